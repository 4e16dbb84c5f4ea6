"""Names of models and addresses of servers: which are accepted, and which are refused."""

from typing import get_args

import pytest

from backsight.core.errors import Invalid
from backsight.language_models import PROVIDERS, checked_base_url, checked_model_name

ELSEWHERE = {"test", "typesafe", "openai-decisions"}
"""Providers of the library that hold no conversation."""


@pytest.mark.parametrize(
    "name",
    ["openai:gpt-5", "anthropic:claude-sonnet-4-5", "ollama:qwen3:8b", "gateway/openai:gpt-5", "openai:org/model@main"],
)
def test_a_name_with_its_provider_is_accepted(name: str) -> None:
    assert checked_model_name(f" {name}\n") == name


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("gpt-5", "give 'openai:gpt-5'"),
        ("claude-opus-4", "give 'anthropic:claude-opus-4'"),
        ("smollm2", "give 'provider:smollm2', such as 'openai:smollm2'"),
        ("qwen3:8b", "for your own server give 'openai:qwen3:8b' and its base URL"),
        ("OpenAI:gpt-5", "did you mean 'openai'"),
        ("openai:", "give 'openai:…'"),
        ("", "give 'provider:model'"),
        ("openai:gpt 5", "without spaces"),
        ("openai:gpt\x005", "without spaces"),
        ("openai:" + "x" * 200, "at most 200 characters"),
        (":gpt-5", "unknown provider"),
    ],
)
def test_a_name_without_a_provider_is_refused_with_the_remedy(name: str, remedy: str) -> None:
    with pytest.raises(Invalid) as refused:
        checked_model_name(name)
    assert refused.value.field == "model"
    assert remedy in refused.value.message


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/v1", "https://llm.example.com", "http://[::1]:9/v1"])
def test_a_valid_address_is_accepted(url: str) -> None:
    assert checked_base_url(f"{url}/ ") == url


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "is not an HTTP address"),
        ("ftp://example.com", "is not an HTTP address"),
        ("http://", "is not an HTTP address"),
        ("http://example.com:http", "is not an HTTP address"),
        ("http://[::1", "is not an HTTP address"),
        ("http://example.com?key=1", "is not an HTTP address"),
        ("http://exa mple.com", "is not an HTTP address"),
        ("https://ana:secret@example.com", "give the key separately"),
    ],
)
def test_an_invalid_address_is_refused(url: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason) as refused:
        checked_base_url(url)
    assert "secret" not in refused.value.message


def test_the_providers_are_those_that_the_library_knows() -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai.models import KnownModelName
    from pydantic_ai.providers import infer_provider_class

    for provider in PROVIDERS:
        try:
            infer_provider_class(provider)
        except ImportError:
            continue  # known, and a library more is needed
    known = {name.partition(":")[0].removeprefix("gateway/") for name in get_args(KnownModelName.__value__)}
    assert known - ELSEWHERE <= set(PROVIDERS)
