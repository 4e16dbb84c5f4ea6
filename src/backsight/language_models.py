"""Which language model writes lessons: its name with its provider, and the address of a server of one's own."""

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
"""Before a provider that is reached through a gateway."""
FAMILIES: Mapping[str, str] = {"gpt": "openai", "claude": "anthropic", "gemini": "google", "mistral": "mistral"}
"""Who is meant by the beginning of a name without a provider."""
LONGEST_NAME = 200


def checked_model_name(name: str, *, field: str = "model") -> str:
    """The name as `provider:model`; one without a provider, or with an unknown one, is refused.

    >>> checked_model_name(" openai:qwen3:8b ")
    'openai:qwen3:8b'
    >>> checked_model_name("gpt-5")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: model: 'gpt-5' names no provider; say 'openai:gpt-5'
    >>> checked_model_name("opnai:gpt-5")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: model: unknown provider 'opnai'; did you mean 'openai'? Known: ...
    """
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or " " in name:
        remedy = f"give 'provider:model' without spaces, at most {LONGEST_NAME} characters"
        raise Invalid(f"{name[:40]!r} is no model; {remedy}", field=field)
    provider, colon, model = name.partition(":")
    if not colon:
        raise Invalid(f"{name!r} names no provider; say {_likely(name)}", field=field)
    if provider.removeprefix(GATEWAY) not in PROVIDERS:
        own = f"for a server of your own say 'openai:{name}' and give its base URL"
        raise Invalid(f"unknown provider {provider!r}; {did_you_mean(provider, PROVIDERS)}; {own}", field=field)
    if not model:
        raise Invalid(f"{name!r} names a provider and no model; say '{name}…'", field=field)
    return name


def checked_base_url(url: str, *, field: str = "base_url") -> str:
    """The address of an OpenAI-compatible server; one with a password in it, or that is none, is refused.

    >>> checked_base_url("http://localhost:8080/v1/")
    'http://localhost:8080/v1'
    >>> checked_base_url("localhost:8080")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: base_url: 'localhost:8080' is no address; give one such as 'http://localhost:8080/v1'
    """
    url = url.strip().rstrip("/")
    example = "give one such as 'http://localhost:8080/v1'"
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, half of a bracket
        whole = False
    if "@" in url:
        raise Invalid("a name or a password is in the address; give the key apart from it", field=field)
    if not whole or not url.isprintable() or " " in url or parts.query or parts.fragment:
        raise Invalid(f"{url[:80]!r} is no address; {example}", field=field)
    return url


def _likely(name: str) -> str:
    """The name with the provider that is likely meant, or how such a name looks."""
    providers = [provider for family, provider in FAMILIES.items() if name.lower().startswith(family)]
    return f"'{providers[0]}:{name}'" if providers else f"'provider:{name}', such as 'openai:{name}'"
