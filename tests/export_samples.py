"""Small files in the shapes that exchanges and brokers export; the data are made up."""

import json
from typing import Any

HYPERLIQUID_FILLS: list[dict[str, Any]] = [
    {
        "coin": "ETH",
        "px": "2366.5",
        "sz": "0.214",
        "side": "A",
        "time": 1_746_093_600_000,
        "startPosition": "0.214",
        "dir": "Close Long",
        "closedPnl": "7.49",
        "hash": "0xc",
        "oid": 3,
        "crossed": False,
        "fee": "0.072926",
        "tid": 103,
        "feeToken": "USDC",
        "twapId": None,
        "cloid": None,
    },
    {
        "coin": "ETH",
        "px": "2354.8",
        "sz": "0.214",
        "side": "A",
        "time": 1_746_090_000_000,
        "startPosition": "0.428",
        "dir": "Close Long",
        "closedPnl": "4.9862",
        "hash": "0xb",
        "oid": 2,
        "crossed": False,
        "fee": "0.072565",
        "tid": 102,
        "feeToken": "USDC",
        "twapId": None,
        "cloid": None,
    },
    {
        "coin": "ETH",
        "px": "2331.5",
        "sz": "0.428",
        "side": "B",
        "time": 1_746_086_400_000,
        "startPosition": "0.0",
        "dir": "Open Long",
        "closedPnl": "0.0",
        "hash": "0xa",
        "oid": 1,
        "crossed": True,
        "fee": "0.4490",
        "tid": 101,
        "feeToken": "USDC",
        "twapId": None,
        "cloid": None,
    },
]

HYPERLIQUID_FUNDING: list[dict[str, Any]] = [
    {
        "time": 1_746_090_000_076,
        "hash": "0x0",
        "delta": {"type": "funding", "coin": "ETH", "usdc": "-0.0125", "szi": "0.428", "fundingRate": "0.0000125"},
    },
    {"time": 1_746_080_000_000, "hash": "0xd", "delta": {"type": "deposit", "usdc": "500.0"}},
    {"time": 1_746_080_000_000, "hash": "0xe", "delta": {"type": "vaultDeposit", "vault": "0x1", "usdc": "10.0"}},
]

BINANCE_SPOT = """\ufeffDate(UTC),Pair,Side,Price,Executed,Amount,Fee
2022-03-28 13:05:00,SOLBUSD,SELL,112.00,0.17982SOL,20.13984BUSD,0.02013984BUSD
2022-03-28 13:01:36,SOLBUSD,BUY,"1,110.03",0.1800000000SOL,19.8054BUSD,0.00018SOL
"""

BINANCE_OLD_SPOT = """Date(UTC),Market,Type,Price,Amount,Total,Fee,Fee Coin
2019-03-28 13:01:36,BNBBTC,BUY,0.0042,10,0.042,0.0075,BNB
2019-03-28 13:05:00,BNBBTC,SELL,0.0043,9.9,0.04257,0.00004257,BTC
"""

BINANCE_FUTURES = """Date(UTC),Symbol,Side,Price,Quantity,Amount,Fee,Fee Coin,Realized Profit,Quote Asset
2026-06-01 10:00:00,BTCUSDT,SELL,68600,0.01,686,0.2744,USDT,6,USDT
2026-06-01 09:00:00,BTCUSDT,BUY,68000,0.005,340,0.136,USDT,0,USDT
2026-06-01 09:00:00,BTCUSDT,BUY,68000,0.005,340,0.136,USDT,0,USDT
"""

BINANCE_COIN_MARGINED = """symbol;SIDE;Price;Quantity;Amount;Fee;Fee Coin;Realized Profit;Time(UTC+2)
BTCUSD_PERP;BUY;60000,5;10;0,0166;0,0000083;BTC;0;24-06-01 09:00:00
"""

BINANCE_TRANSACTIONS = """Date(UTC),Type,Amount,Asset,Symbol,Transaction ID
2026-06-01 16:00:00,FUNDING_FEE,-0.5,USDT,BTCUSDT,9001
2026-06-01 10:00:00,REALIZED_PNL,6,USDT,BTCUSDT,9000
2026-06-01 08:00:00,TRANSFER,1000,USDT,,8999
2026-06-01 07:00:00,FUNDING_FEE,0.0001,BTC,BTCUSD_PERP,8998
"""

BYBIT_DERIVATIVES = """Market,Filled Type,Filled Quantity,Filled Price,Order Price,Fee Rate,Trading Fee,feeCoin,\
ExecFeeV2,Direction,Order Type,Trasaction ID,Order No.,Transaction Time(UTC+0)
AAAUSDT,Trade,2,100,100,0.00055,0.11,USDT,0.11,Long,Market, a1, o1,10:00 2026-01-10
AAAUSDT,Funding,2,108,0,0.0001,0.0216,USDT,0.0216,Long,--, f1, g1,08:00 2026-01-11
AAAUSDT,Funding,2,108,0,-0.0001,-0.05,,0,Long,--, f2, g2,16:00 2026-01-11
AAAUSDT,Liquidation,2,90,90,0.00055,0.099,USDT,0.099,Short,Market, a2, o2,09:00 2026-01-12
BTCUSD,Trade,500,60000,60000,0.00055,0.0000046,BTC,0.0000046,Short,Market, a3, o3,09:30 2026-01-12
AAAUSDT,Adjustment,1,90,90,0,0,,0,Short,--, a4, o4,09:40 2026-01-12
"""

BYBIT_SPOT = """UID: 281915315,Company Name: ,Country:
Uid,Spot Pairs,Order Type,Direction,Filled Value,Filled Price,Filled Quantity,Fees,Transaction ID,Order No.,\
Timestamp (UTC+0)
281915315,CCCUSDT,MARKET,BUY,20.00,2.00,10.00,0.01,2290000000522832993,1836393090823494400,2024-12-09 19:48:23
281915315,CCCUSDT,LIMIT,SELL,30.00,3.00,9.99,0.03,2290000000522832994,1836393090823494401,2024-12-09 20:48:23
"""

BYBIT_LOG = """UID: 1,Company Name: ,Country:
Uid,Currency,Contract,Type,Direction,Quantity,Position,Filled Price,Funding,Fee Paid,Cash Flow,Change,Wallet Balance,\
Action,OrderId,TradeId,Time(UTC)
1,USDT,AAAUSDT,TRADE,BUY,2,2,100,0,-0.11,0,-0.11,1000,OPEN,o1,x1,2026-01-10 10:00:00
1,USDT,AAAUSDT,SETTLEMENT,BUY,--,2,--,-0.0216,0,0,-0.0216,999.9784,SETTLEMENT,--,x2,2026-01-11 08:00:00
1,USDT,AAAUSDT,TRADE,SELL,2,0,110,0,-0.121,20,19.879,1019.8574,CLOSE,o2,x3,2026-01-11 10:00:00
1,CCC,CCCUSDT,TRADE,BUY,10,0,2,0,-0.01,10,9.99,9.99,--,o3,x4,2026-01-12 10:00:00
1,USDT,CCCUSDT,TRADE,BUY,-20,0,2,0,0,-20,-20,999.8574,--,o3,x4,2026-01-12 10:00:00
1,CCC,CCCUSDT,TRADE,SELL,-9.99,0,3,0,0,-9.99,-9.99,0,--,o4,x5,2026-01-13 10:00:00
1,USDT,CCCUSDT,TRADE,SELL,29.97,0,3,0,-0.03,29.97,29.94,1029.7974,--,o4,x5,2026-01-13 10:00:00
1,USDT,--,TRANSFER_IN,--,500,0,--,0,0,500,500,1529.7974,--,--,--,2026-01-14 10:00:00
1,USDT,--,INTEREST,--,--,0,--,0,0,-0.004,-0.004,1529.7934,--,--,--,2026-01-14 11:00:00
"""

OKX = (
    "\n".join(
        "\ufeff" + line
        for line in [
            "UID:1,Account Type:Main,Time Zone:UTC+3",
            "id,Order id,Time,Trade Type,Symbol,Action,Amount,Trading Unit,Filled Price,PnL,Fee,Fee Unit,"
            "Position Change,Position Balance,Balance Change,Balance,Balance Unit",
            "1,11,2026-01-10 10:00:00,Spot,AAA-USDT,Buy,2,AAA,100,0,-0.002,AAA,0,0,1.998,1.998,AAA",
            "2,11,2026-01-10 10:00:00,Spot,AAA-USDT,Sell,200,AAA,100,0,0,USDT,0,0,-200,800,USDT",
            "3,12,2026-01-10 11:00:00,Spot,AAA-USDT,Sell,1.998,AAA,110,0,0,AAA,0,0,-1.998,0,AAA",
            "4,12,2026-01-10 11:00:00,Spot,AAA-USDT,Buy,219.78,AAA,110,0,-0.22,USDT,0,0,219.56,1019.56,USDT",
            "5,13,2026-01-10 12:00:00,Swap,TAO-USDT-SWAP,Open long,98,cont,204,0,-0.1,USDT,98,98,-0.1,1019,USDT",
            "6,14,2026-01-10 15:00:00,Swap,TAO-USDT-SWAP,Funding fee expense,98,cont,0,-0.4,0,USDT,0,98,-0.4,1019,USDT",
            "7,15,2026-01-10 16:00:00,Swap,TAO-USDT-SWAP,Close long,98,cont,205.1,1.078,-0.1,USDT,-98,0,0.9,1020,USDT",
            "8,16,2026-01-10 17:00:00,Transfer,,Transfer out,0,cont,0,0,0,USDT,0,0,-100,920,USDT",
        ]
    )
    + "\n"
)

IBKR_FLEX = """<FlexQueryResponse queryName="Example" type="AF">
<FlexStatements count="1">
<FlexStatement accountId="U1" fromDate="20260101" toDate="20260131" period="" whenGenerated="20260201;023546">
<OpenPositions>
<OpenPosition accountId="U1" symbol="AAPL" position="40" levelOfDetail="SUMMARY" />
</OpenPositions>
<Trades>
<Trade accountId="U1" currency="USD" fxRateToBase="0.9" assetCategory="STK" symbol="AAPL" multiplier="1"
 dateTime="20260105;093000" quantity="10" tradePrice="300" ibCommission="-1" ibCommissionCurrency="USD" buySell="BUY"
 tradeID="1" ibOrderID="11" fifoPnlRealized="0" notes="O" levelOfDetail="EXECUTION" />
<Order accountId="U1" symbol="AAPL" quantity="10" tradePrice="300" dateTime="20260105;093000" levelOfDetail="ORDER" />
<Trade accountId="U1" currency="USD" fxRateToBase="0.9" assetCategory="OPT" symbol="AAPL  260116C00310000"
 underlyingSymbol="AAPL" multiplier="100" dateTime="20260106;100000" quantity="-1" tradePrice="2.5" ibCommission="-0.5"
 ibCommissionCurrency="USD" buySell="SELL" tradeID="2" notes="O" levelOfDetail="EXECUTION" />
<Trade accountId="U1" currency="USD" fxRateToBase="0.9" assetCategory="OPT" symbol="AAPL  260116C00310000"
 underlyingSymbol="AAPL" multiplier="100" dateTime="20260116;162000" quantity="1" tradePrice="0" ibCommission="0"
 buySell="BUY" tradeID="3" fifoPnlRealized="249.5" notes="C;Ep" levelOfDetail="EXECUTION" />
</Trades>
<CorporateActions>
<CorporateAction accountId="U1" symbol="AAPL" type="FS" dateTime="20260110;202500" quantity="30"
 actionDescription="AAPL(US0378331005) SPLIT 4 FOR 1 (AAPL, APPLE INC, US0378331005)" transactionID="5" />
<CorporateAction accountId="U1" symbol="OLD" type="TC" dateTime="20260110;202500" quantity="-3" description="MERGED" />
</CorporateActions>
<CashTransactions>
<CashTransaction accountId="U1" currency="USD" fxRateToBase="0.9" symbol="AAPL" type="Dividends" amount="10"
 dateTime="20260120" transactionID="6" levelOfDetail="DETAIL" />
<CashTransaction accountId="U1" currency="USD" fxRateToBase="0.9" symbol="AAPL" type="Dividends" amount="10"
 dateTime="20260120" levelOfDetail="SUMMARY" />
<CashTransaction accountId="U1" currency="EUR" fxRateToBase="1" symbol="" type="Deposits/Withdrawals" amount="1000"
 dateTime="20260102" transactionID="7" levelOfDetail="DETAIL" />
</CashTransactions>
</FlexStatement>
</FlexStatements>
</FlexQueryResponse>
"""

IBKR_FLEX_CSV = """ClientAccountID,AssetClass,Symbol,Conid,DateTime,Quantity,TradePrice,IBCommission,Buy/Sell,\
LevelOfDetail,IBOrderID,IBExecID,TradeID
U123,STK,AAPL,265598,20260714;093000,103,300,-1.000309,BUY,EXECUTION,ORDER-1,EXEC-1,TRADE-1
U123,STK,AAPL,265598,20260714;093000,137,300,-0.200411,BUY,EXECUTION,ORDER-1,EXEC-2,TRADE-2
U123,STK,AAPL,265598,20260714;103000,240,305,-1.25,SELL,EXECUTION,ORDER-2,EXEC-3,TRADE-3
U123,STK,AAPL,265598,20260714;103000,240,305,-1.25,SELL,ORDER,ORDER-2,,
"""

IBKR_STATEMENT = """Statement,Header,Field Name,Field Value
Statement,Data,BrokerName,Interactive Brokers
Account Information,Header,Field Name,Field Value
Account Information,Data,Base Currency,USD
Trades,Header,DataDiscriminator,Asset Category,Currency,Symbol,Date/Time,Quantity,T. Price,C. Price,Proceeds,Comm/Fee,\
Basis,Realized P/L,MTM P/L,Code
Trades,Data,Order,Stocks,USD,AAPL,"2026-05-01, 09:35:00","1,000",182.10,182.10,-182100,-1.00,182101,0,0,O
Trades,Data,Order,Stocks,USD,AAPL,"2026-05-04, 10:05:00","-4,000",46.00,46.00,184000,-1.00,-182101,1898,0,C;P
Trades,Data,ClosedLot,Stocks,USD,AAPL,2026-05-01,"4,000",45.525,,,,182101,1898,,
Trades,SubTotal,,Stocks,USD,AAPL,,-3000,,,1900,-2.00,0,1898,0,
Trades,Data,Order,Stocks,EUR,SAP,"2026-05-05, 05:00:00",50,120,120,-6000,-3,6003,0,0,O
Trades,Total,,Stocks,USD,,,,,,1900,-5.00,,1898,0,
Trades,Data,Order,Equity and Index Options,USD,SPY 16JAN26 600 C,"2026-01-05, 10:00:00",-2,3.5,,700,-1.4,-698.6,0,0,O
Trades,Data,Order,Equity and Index Options,USD,SPY 16JAN26 600 C,"2026-01-16, 16:20:00",2,0,,0,0,698.6,698.6,0,C;Ep
Trades,Header,DataDiscriminator,Asset Category,Currency,Symbol,Date/Time,Quantity,T. Price,,Proceeds,Comm in USD,,,\
MTM in USD,Code
Trades,Data,Order,Forex,USD,EUR.USD,"2026-05-05, 05:00:00",6000,1.10,,-6600,-2,,,0.1,
Corporate Actions,Header,Asset Category,Currency,Report Date,Date/Time,Description,Quantity,Proceeds,Value,\
Realized P/L,Code
Corporate Actions,Data,Stocks,USD,2026-05-02,"2026-05-01, 20:25:00","AAPL(US0378331005) Split 4 for 1 (AAPL, APPLE)",\
3000,0,0,0,
Corporate Actions,Data,Total,,,,,,0,0,0,
Dividends,Header,Currency,Date,Description,Amount
Dividends,Data,EUR,2026-05-20,SAP(DE0007164600) Cash Dividend EUR 2.20 per Share (Ordinary Dividend),110
Dividends,Data,Total,,,110
Deposits & Withdrawals,Header,Currency,Settle Date,Description,Amount
Deposits & Withdrawals,Data,USD,2026-01-02,Electronic Fund Transfer,20000
Financial Instrument Information,Header,Asset Category,Symbol,Description,Conid,Security ID,Underlying,Multiplier,Code
Financial Instrument Information,Data,Equity and Index Options,SPY 16JAN26 600 C,SPY 16JAN26 600 C,1,,SPY,100,
Base Currency Exchange Rate,Header,Currency,Rate
Base Currency Exchange Rate,Data,EUR,1.1
"""

ALPACA: list[dict[str, Any]] = [
    {
        "id": "20260310120000000::b3d29c1a",
        "activity_type": "FILL",
        "transaction_time": "2026-03-10T14:00:00.709802Z",
        "type": "partial_fill",
        "price": "187.25",
        "qty": "10",
        "side": "sell_short",
        "symbol": "AAPL",
        "leaves_qty": "5",
        "order_id": "61e69015",
        "cum_qty": "10",
    },
    {"id": "2::d", "activity_type": "DIV", "date": "2026-03-11", "net_amount": "1.02", "symbol": "T", "qty": "2"},
    {
        "id": "3::s",
        "activity_type": "SPLIT",
        "date": "2026-03-12",
        "net_amount": "0",
        "description": "REMOVE, From QTY:10, To QTY:30, Position Value:1000.00",
        "symbol": "AAPL",
        "qty": "10",
    },
    {"id": "4::s", "activity_type": "SPLIT", "date": "2026-03-12", "net_amount": "0", "symbol": "AAPL", "qty": "-30"},
    {"id": "5::o", "activity_type": "OPEXP", "date": "2026-03-20", "symbol": "AAPL260320C00200000", "qty": "-1"},
    {"id": "6::c", "activity_type": "CSD", "date": "2026-03-01", "net_amount": "5000"},
    {"id": "7::i", "activity_type": "INT", "date": "2026-03-31", "net_amount": "0.07"},
    {"id": "8::f", "activity_type": "FEE", "date": "2026-03-10", "net_amount": "-0.02", "symbol": "AAPL"},
    {
        "id": "9::k",
        "activity_type": "CFEE",
        "date": "2026-03-10",
        "symbol": "BTCUSD",
        "qty": "-0.001",
        "price": "60000",
    },
]

ALPACA_CSV = """id,activity_type,transaction_time,type,price,qty,side,symbol,leaves_qty,order_id,cum_qty
1::a,FILL,2026-03-10T14:00:00.709802Z,fill,187.25,10,buy,AAPL,0,o1,10
2::b,FILL,2026-03-11T14:00:00Z,fill,190,10,sell,AAPL,0,o2,10
"""

TRADIER: dict[str, Any] = {
    "history": {
        "event": [
            {
                "amount": -129.05,
                "date": "2018-05-23T00:00:00Z",
                "type": "trade",
                "trade": {
                    "commission": 0.0,
                    "description": "CALL GE     06/22/18    14",
                    "price": 1.29,
                    "quantity": 1.0,
                    "symbol": "GE180622C00014000",
                    "trade_type": "Option",
                },
            },
            {
                "amount": 0,
                "date": "2018-06-22T00:00:00Z",
                "type": "option",
                "symbol": "GE180622C00014000",
                "option": {"option_type": "OPTEXP", "description": "Expired", "quantity": -1.0},
            },
            {
                "amount": 10.06,
                "date": "2018-10-31T00:00:00Z",
                "type": "trade",
                "trade": {"commission": 1.5, "price": 10.06, "quantity": -1.0, "symbol": "GE", "trade_type": "Equity"},
            },
            {
                "amount": 0.12,
                "date": "2018-10-25T00:00:00Z",
                "type": "dividend",
                "dividend": {"description": "GENERAL ELECTRIC COMPANY", "quantity": 0.0, "symbol": "GE"},
            },
            {"amount": 3000.0, "date": "2018-05-01T00:00:00Z", "type": "ach", "ach": {"description": "ACH DEPOSIT"}},
            {"amount": -0.5, "date": "2018-05-01T00:00:00Z", "type": "fee", "fee": {"description": "FEE"}},
        ]
    }
}

SAMPLES: dict[str, tuple[str, ...]] = {
    "hyperliquid": (json.dumps(HYPERLIQUID_FILLS, indent=1), json.dumps(HYPERLIQUID_FUNDING)),
    "binance": (BINANCE_SPOT, BINANCE_OLD_SPOT, BINANCE_FUTURES, BINANCE_COIN_MARGINED),
    "binance-transactions": (BINANCE_TRANSACTIONS,),
    "bybit": (BYBIT_DERIVATIVES, BYBIT_SPOT),
    "bybit-log": (BYBIT_LOG,),
    "okx": (OKX,),
    "ibkr-flex": (IBKR_FLEX,),
    "ibkr-flex-csv": (IBKR_FLEX_CSV,),
    "ibkr-statement": (IBKR_STATEMENT,),
    "alpaca": (json.dumps(ALPACA),),
    "alpaca-csv": (ALPACA_CSV,),
    "tradier": (json.dumps(TRADIER, indent=2),),
}
"""Files by the name of their format."""
