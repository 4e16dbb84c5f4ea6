"""Compression of text at rest: raw DEFLATE with a preset dictionary, which makes short texts small too.

The first byte of a stored value says how the rest is to be read. A dictionary is part of the format: it is never
changed, another one would get another first byte.
"""

import zlib

PLAIN, DEFLATED = b"\x00", b"\x01"
SHORTEST = 64
"""Bytes below which compressing is not worth the time."""
MOST = 1024 * 1024
"""Bytes above which it is neither: longer texts are the row hashes of large imports, which hardly become smaller."""
LONGEST = 64 * 1024 * 1024
"""Bytes of the longest text that is decompressed, so that a spoilt value cannot fill the memory."""
_DICTIONARY = (
    b"\n## Market\n## Plans that apply\n## Open positions\n## Recent trades\n## Account\nlong short BTC ETH USD"
    b"### Entry timing\n### Sizing\n### Symbol selection\n### Exit timing\n### Regime fit\n(no clear pattern yet)\n"
    b"## Recent activity (this session)\n- executed orders today (UTC): \n- rejected since: \n- last decision: \n"
    b'"fill_id":"fee":"kind":"trade","price":"quantity":"sequence":'
    b'{"fills":[],"marks":{"},"portfolio":{"account":null,"at":"2026-01-01T00:00:00.000000Z","cash":10000.0,"equity":'
    b'10000.0,"open_orders":[],"positions":[{"average_price":,"direction":"long","leverage":null,"liquidation_price":'
    b'null,"mark":,"position_key":"","size":1.0,"stop_price":,"symbol":"","target_price":null}]}}'
    b'{"asked":{"as_of":"2026-01-01T00:00:59.999999Z","context":{"atr_d1":null,"atr_h1":null,"atr_m5":null,'
    b'"atr_ratio_h1_d1":null,"confidence":0.5,"consecutive_losses":0,"day_of_week":1,"drawdown_pct":0.0,"hour_utc":'
    b',"price":null,"regime":"trending_up","ranging","trending_down","regime":null,"session":"new_york","asia","london"'
    b',"spread_as_atr_pct":null,"spread_points":null,"symbol":"BTC","volatility_regime":"normal","high","low",'
    b'"volatility_regime":null},"deployment_id":null,"direction":"short","direction":"long","direction":null,"limit":3,'
    b'"market_context":null,"memory_types":["episodic"],"mode":"live","paper","mode":"sim","period_weight":false,'
    b'"seen_at":"2026-01-01T00:00:00.000000Z","since":null,"strategy_name":"","symbol":"","tags":[],"until":null},'
    b'"candidates":,"found":{"memories":[{"factors":{"Aff":1.0,"Conf":0.75,"Period":1.0,"Q":0.,"Rec":0.99,"Sim":0.5},'
    b'"id":"","value":0.}],"nearest":[],"warnings":[{"factors":{"Aff":1.0,"Conf":0.75,"Period":1.0,"Q":0.,"Rec":0.9,'
    b'"Sim":1.0},"id":"","value":0.'
    b'[{"items":"","table":"shown_segments"},{"items":"","table":"position_marks"},{"items":"","table":"recalls"},'
    b'{"items":"","table":"retrievals"},{"items":"","table":"decision_snapshots"}]'
)


def compress_text(text: str) -> bytes:
    """The stored form of a text.

    >>> len(compress_text("a long text " * 100)) < 50
    True
    """
    plain = text.encode()
    if SHORTEST <= len(plain) <= MOST:
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, _DICTIONARY)
        small = deflate.compress(plain) + deflate.flush()
        if len(small) < len(plain):
            return DEFLATED + small
    return PLAIN + plain


def decompress_text(stored: bytes) -> str:
    """The text of a stored form; ValueError if it is none.

    >>> decompress_text(compress_text("Breaks hold."))
    'Breaks hold.'
    """
    kind, rest = stored[:1], stored[1:]
    if kind == PLAIN:
        return bytes(rest).decode()
    if kind != DEFLATED:
        raise ValueError("this is not a compressed text")
    inflate = zlib.decompressobj(-15, _DICTIONARY)
    try:
        plain = inflate.decompress(rest, LONGEST)
    except zlib.error as error:
        raise ValueError(f"the compressed text is damaged: {error}") from None
    if not inflate.eof or inflate.unused_data:
        raise ValueError("the compressed text is damaged or too long")
    return plain.decode()
