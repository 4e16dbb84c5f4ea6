"""Names and addresses of the language models that write lessons."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from backsight.core.errors import Invalid, did_you_mean

PROVIDERS = (
    *("alibaba", "anthropic", "azure", "azure-responses", "bedrock", "bedrock-mantle", "cerebras", "cohere", "crusoe"),
    *("deepseek", "fireworks", "github-copilot", "google", "google-cloud", "groq", "heroku", "huggingface"),
    *("litellm", "meta", "mistral", "moonshotai", "nebius", "ollama", "openai", "openai-chat", "openai-chatgpt"),
    *("openai-codex", "openai-responses", "openrouter", "ovhcloud", "sambanova", "snowflake", "together", "vercel"),
    *("vllm", "xai", "zai"),
)
GATEWAY = "gateway/"
"""The prefix of a provider that is reached through a gateway."""
FAMILIES: Mapping[str, str] = {"gpt": "openai", "claude": "anthropic", "gemini": "google", "mistral": "mistral"}
"""The likely provider of a model, by the start of its name."""
LONGEST_NAME = 200


def checked_model_name(name: str, *, field: str = "model") -> str:
    """The name as `provider:model`. A name without a provider, or with an unknown provider, is refused.

    >>> checked_model_name(" openai:qwen3:8b ")
    'openai:qwen3:8b'
    >>> checked_model_name("gpt-5")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: model: 'gpt-5' has no provider; give 'openai:gpt-5'
    >>> checked_model_name("opnai:gpt-5")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: model: unknown provider 'opnai'; did you mean 'openai'? Known: ...
    """
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or " " in name:
        remedy = f"give 'provider:model' without spaces, at most {LONGEST_NAME} characters"
        raise Invalid(f"{name[:40]!r} is not the name of a model; {remedy}", field=field)
    provider, colon, model = name.partition(":")
    if not colon:
        raise Invalid(f"{name!r} has no provider; give {_suggestion(name)}", field=field)
    if provider.removeprefix(GATEWAY) not in PROVIDERS:
        own = f"for your own server give 'openai:{name}' and its base URL"
        raise Invalid(f"unknown provider {provider!r}; {did_you_mean(provider, PROVIDERS)}; {own}", field=field)
    if not model:
        raise Invalid(f"{name!r} has a provider but no model; give '{name}…'", field=field)
    return name


def checked_base_url(url: str, *, field: str = "base_url") -> str:
    """The address of an OpenAI-compatible server. An invalid address, or one with a password, is refused.

    >>> checked_base_url("http://localhost:8080/v1/")
    'http://localhost:8080/v1'
    >>> checked_base_url("localhost:8080")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: base_url: 'localhost:8080' is not an HTTP address; give one such as 'http://localhost:8080/v1'
    """
    url = url.strip().rstrip("/")
    example = "give one such as 'http://localhost:8080/v1'"
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number, an unbalanced bracket
        is_http = False
    if "@" in url:
        raise Invalid("the address contains a user name or a password; give the key separately", field=field)
    if not is_http or not url.isprintable() or " " in url or parts.query or parts.fragment:
        raise Invalid(f"{url[:80]!r} is not an HTTP address; {example}", field=field)
    return url


def _suggestion(name: str) -> str:
    """The name with its likely provider, or with an example of a provider."""
    providers = [provider for family, provider in FAMILIES.items() if name.lower().startswith(family)]
    return f"'{providers[0]}:{name}'" if providers else f"'provider:{name}', such as 'openai:{name}'"
