"""Known token counts of words, marks and letters: the larger of cl100k and o200k.

A missing entry only makes an estimate higher. An entry with too few tokens makes estimates wrong; a test checks all of
them against both tokenizers.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from string import ascii_letters

MARKS = "→←…–—‘’“”±×·−•≤≥€£"
"""Characters beyond ASCII that are neither letters, digits nor spaces in both tokenizers."""

_WORDS: Mapping[tuple[str, int], str] = {
    (" w|w| W|W", 1): """
        a ability about above absolute abstract accept accepted access according account act action actions active
        activity actual actually add added adding additional address adds adjust after again against age agent ahead
        alert algorithm align all allocation allow allowed allows almost along already also alternate alternative
        although always am american among amount an analysis anchor and annual another answer any anything app
        application applications apply archive are area argument arguments around array arrays as asia ask asset
        assets assigned assignment associated at attached attack attempt attention author authors auto automatic
        available average avoid away back background bad balance band bar bars base based basic be bear beat because
        been before begin behavior being below best beta better between bias bid big binary bit bitcoin bits block
        blocks body bond book both bottom bound box branch break breaking bring broken broker bubble bug build
        building built business but buy by call called calling calls can cannot cap capital care case cases cash
        cast catch category cause cells chain change changed changes changing channel character characters charge
        chart charts cheap check checked checking checks child children china choice choose claim claims class
        classes clean clear clip close closed closing cluster code codes coin coins collapse collect collection
        color colors column columns come coming command commands comment comments commercial commit common community
        compare comparison compatible complete completed completion complex component components compression
        computer concept condition conditions configure confirm confirmation conn connect connected connection
        connections consider console constant constraints construct construction consult contact container contains
        content contents context continue contract contracts control conversion convert converted copy copyright
        core correct cost could count counter countries course cover coverage create created creates creating
        creation credit cross crypto currency current currently curve custom cut cycle daily damage data database
        date day days dead deal decision deep default defaults define defined defines definition definitions delay
        delete deleted delta depart dependencies dependency depending depth der derived describe description
        descriptor design destroy detail details detect development device dictionary did die difference different
        digital direct direction disable disabled discount disk dispatch display dist distribution do document
        documentation documents does doing done double down draw drive driver drop due dump duplicate duration
        during dynamic each early ease easy echo edge edit editor effect effective effects either element elements
        else embedded empty enable enabled end engine ensure enter entities entity entries entry environment equal
        err error errors escape even event events ever every everything exact example examples except exception
        exceptions execute execution exist existing exists exit expand expect expected experience experimental
        explicit express expression extend extended extension extensions external extra extract fact factor fade
        fail failed failure fair fake fall false family far fast feature features fed fee feed fetch few field
        fields figure file files fill filter final finally find finding fine finish finished first fit five fix
        fixed flag flags flat flip floor flow flush follow following for force forecast foreign form format formats
        former forms forward found four frame free fresh friends from front full fully future gain gamma gap general
        generate generated generation generator generic get gets getting give given global go goal going gold good
        got government grammar grant graph greater group groups guard guess guide had half hand handle handles
        handling hard has have having he head heat heavy height help helper here hidden high higher highest
        highlight his history hit hits hold holder home hooks hope host hour hours how however human i ice ident
        identity if ignore image images impact implement implementation important in include included includes
        including incoming incorrect increase individual info inform information initial initialize insert inside
        install installation installed instance instances instead instruction instructions intent interest
        interesting interfaces internal into invalid inventory invoke is issue issues it item items its job jobs
        join jump just keep key keywords kind know knowledge known label land language languages large last late
        later latest law layer layout lead leader leading learn least leave led left leg legacy legal length less
        let letter level levels lexer license licensed life light like limit limited line lines link linked links
        list lists literal little live load loaded loading local located location locations logger logging logic
        long look looking looks lookup loss lost lot low lower machine macro made main major make maker makes making
        man management manager manual many margin mark marker market mask master match matches matching material
        materials math matrix maximum may maybe me mean means media median medium meet member members memory message
        messages met mid middle mind minimum minor minute minutes miss missing mix mode model models modern modified
        modify moment money month monthly more most move moves moving much multiple must my name named names native
        natural nature near need needed needs negative nested net network neutral never new news next nice night no
        noise non none nor normal normally not note notes nothing notice now number numbers odd of off offer offers
        official offset often oil old on once one online only open opening operation operations operator operators
        opt option optional options or order ordered orders organization origin original other others otherwise our
        out output outside over overall overflow own owner owners pack padding page pages pair paper paragraph
        parents part partial parts party pass passed past pattern patterns pause pay peak pending people per percent
        perform performance perhaps period permission permissions persistent person personal persons pick piece pin
        place placeholder places plain plan plans platform play please plus point points policy pool portfolio
        position positions positive possible post potential power practice preferred premium prepare present
        pressure pretty previous price prices primary print prior private probably problem process processing
        product production products profit program progress project projects prompt properties property proposal
        protect protected protocol provide public publish published pull purpose push put quality quarter question
        questions quick quiet quite quote quotes race raise raised raises random range rate rates rather ratio reach
        reaction read reader reading ready real really reason receive received recent recommend recommended record
        records red reduce refer reference references reflect region register registered regular reject related
        relationship relative release released remaining remote remove removed render repeat replace replacement
        report reports represent representation require required requirements requires reserved reset resolution
        resolve resource resources respond rest result results retrieve return returned returns reverse review
        revision reward right rights risk roll rotation round route row rows rule rules run runner running runs safe
        sale same sample save saved say scalar scale scheme search season second seconds secret section sector
        security see seek seen select selected selection self sell seller send sending sense sent sequence
        serialized series serve service services session sessions set sets setting settings setup shape share shared
        shares sharp shift short should show shows side sign signal signals signature signed similar simple since
        single site size skip slow small smart smooth snap so soft sold solid solution some someone something
        sometimes soon sort sorted source sources space spaces spec special specific speed split spot spread spring
        stack stage standard start started starting stat state statement states static status stay step steps still
        stock stop storage store stored stores strategy streams strength strict strike strong structure stuff style
        sub subject success successful such suite sum support supported sure swap switch symbol symbols system
        systems tab table tables tail take taken taking talk target targets task tasks team technical tell temporary
        term terms testing tests text than that the their them theme then there these they thin thing things think
        third this those though thought three through throw throws thus tick time timeout times title to today token
        tokens too tool tools top total touch trace track tracking trade traditional transaction transfer transport
        trap tree trigger true trust try trying turn two type types under unique units unknown unless unsupported
        until up update updated updates upon upper us use used uses using usually util utilities utility valid
        validate value values van variant velocity verify version versions very via view views visible visit volume
        vs wait waiting walk wall want warning was watch way we weak web website week weekly weight well were what
        whatever wheel when where whether which while who whole why wide width wild will win window winner wins with
        within without won word words work workers working works world would wrap wrapped write writer writes
        writing written wrong year years yet you your zero zone""",
    (" w|w| W", 2): """
        able adaptive ago agree alone assist balanced bands basis bugs bull buyer came carry comes confidence
        contributors copies covered deliver depend depends desired developers distributed drops emit ends especially
        essential favor fell fib firm flatten gone gross growth hammer held holding holds idea identify implements
        laws listed lose markets matter meaning mention might mostly necessary neck older ones opens ordering panic
        particularly permit pivot possibly prepared prevent printed prints produce proper provided reads recover
        respect rise rolling said selling shall silent stable starts stocks supports takes tested tight typically
        wanted ways went wish worth yield zones""",
    (" w| W|W", 2): """
        across advertising america anyone applied april asian asked attempts august become beginning behaviour
        behind benefits beyond buying callable certain chance clause clearly compatibility compilation conflict
        correction december demand designed despite detailed detection disclaimer earlier enough equivalent europe
        evidence exactly expansion extreme fear formatting friday further generally giving granted immediately
        increasing independent initialization installing interested japan liquid london march modification monday
        morning naming nearly neither november outcome overrides platforms poor previously processes programming
        provides recently regardless regression removing rendering reporting requirement resistance retail returning
        safety scaling several showing simply specification specify spirit statements successfully sunday supply
        talking therefore throughout timing together tomorrow tonight towards trader trading triple turning various
        whenever yesterday york""",
    (" w| W", 2): """
        addition agreement analyst applies applying approach assume automatically beats believe benefit bonds builds
        buyers candle causes ceiling chase chop combination compared completely compliance constructs converts
        cooling correspond costs couple crash crossing cutting determine developed differences dip dollar easily
        enables entire equity establish evening exposure falling faster fees forex fundamental funding futures
        generates gives goes grants grinding guidance hedge helps highly honor horizon imported improve improved
        indicates individuals keeps lack larger largest learned lessons longer loose losing maintain momentum narrow
        newly notices obtain overnight passing portions positioned problems produced programs pump quickly rally
        reasons recorded recovery reduced releases relevant relief represents responsible restrictions rising saw
        saying says seems sellers separate shelf shorts significant situation sized sour specifically specifies
        spike stall statistical stops suitable supporting surge sweep swing thesis thick took trades treat trend
        trends tried twice understand useful variety wants warranty weekend whale whoever winners winning worse
        worst yourself""",
    (" w|w", 2): """
        accessible affected algo aliases annotations appear appropriate bounce branches builtin chosen computed
        configured confirmed consistent constructed contain contained cuts datetime entered exclude expiry extends
        extent fails fallback filled fills flows formatted forming graphql halt handled identified ignored
        implemented inverse issued iteration licenses likely limitations mapped marked matched merged nearest noop
        normalized onto opened optimized pairs passes placed pm portion processed profits pytest quoted ranges
        reasonable refs remain reported represented requested resolved restriction retain reuse scaled shown
        specified stands subset suggest ticks tries turned typing usable usual volatile warnings whose worked""",
    (" w", 2): """
        accepts accessed accessing affect afternoon aggressive agreed allowing appears applicable arbitrary assumed
        attempting behaves bids bounced bouncing breakdown breakout breaks broke brought buys caching calm candles
        captured caused caution chased chasing closes collected commits confirming confirms conflicts confused
        considered consist containing continuation contributed conviction copied copying corrected correctly
        correlated correlation crossed crossover debugging decay decided declared decline declining defining
        derivative described describes describing detected determined deviation dialect differ difficult dips
        directional directly distribute distributions documented dominance downloaded downside drift dropped
        dropping dumped dumping earnings easier effort emitted endorse entering evaluated executed exited exiting
        exits expanding expecting expensive explicitly expressions extracted faded fades fading failing failures
        fixes flipped flips followed follows footprint freely functionality furnished gained gaining gains gaps gave
        geared generating grind grows happen hereby highlighting highs hike hikes hostile hourly hype identical
        imbalance implementations implied impulse incompatible incorrectly indicate indicated inferred inflation
        intact intended internally introduced invoked involved itself judgement jumped kept knows latter leash
        limitation literals looked loser losers losses lows maintained manually meant measured missed modifications
        moved newer obvious occur occurred occurs omitted optionally overhead overlap partially particular paying
        payoff performed permitted positional positioning potentially preserved primarily produces profitable
        promote publicity pumped pushed ranging reaches readable realised realized rebound recap receiving recession
        reclaim reclaimed recommendation recovered redistribute referenced refers regime rejected rejection rejects
        remains remembered renamed rendered replaced replaces representations representing reproduce resulting retained
        revert reverted ripped risks risky seem sells sentiment separated sequences setups shallow sideways silently
        simulated sizing skew skipped slight slope slowing specifying spells spikes spreads sqlalchemy squeeze
        stacked stalled stated steep stochastic stopped stronger struggling substantial supplied swings targeting
        thrown thrust tightly timeframe told topping toward traded traders trailing trapped traps treated trending
        triggered triggers uncertain unchanged underlying unnecessary unwind upside upstream validates variance
        volatility volumes waited weaken weakening weaker weakness wedge whales whitespace whom wider wrapping wrote
        yields""",
    ("", 2): """
        altcoin altcoins bearish breakouts confluence contango drawdown ema fakeout february halving impulsive
        inflow inflows intermarket invalidated invalidation january july june longs lowvol macd nonfarm notional
        october orderbook outflow outflows outperform overextended overfit parabolic perp powell pullback pullbacks
        rebalance rejections retest retested retesting retrace reversion reverting rsi saturday seasonality shorted
        shorting solana spiked stalling stationarity straddle strangle symmetrical tailwind taker thursday trailed
        tuesday twap underperform vix vwap wednesday wick wicks""",
    (" w|w| W", 3): """
        ethereum""",
    (" w| W|W", 3): """
        european september""",
    (" w| W", 3): """
        catalyst convenience elevated fibonacci guaranteed providing""",
    (" w|w", 3): """
        steady urgent""",
    (" w", 3): """
        accumulation averaged becomes breadth bullish climax consecutive consolidation corresponding corresponds
        derivatives divergence encountered entirely exhausted exhaustion extremes fundamentals happened happens
        indicating interpreted issuance leverage liquidity loosely mechanism mistake necessarily neckline obtained
        obtaining oscillator oversized perpetual pertaining precedence priced properly purposes rallied rallies
        receives reducing respectively reversal roughly scalp separately slightly sublicense subsequent swept
        themselves tighten tightened tightening warranties widened widening""",
    ("", 3): """
        capitulation choppy cointegration divergent downtrend drawdowns engulfing harami hawkish hedged hedging
        hivol intraday lagging leveraged liquidated liquidation liquidations overbought oversold payrolls
        retracement reversals scalping selloff shakeout slippage stablecoin sweeps tokyo trendline unrealised
        unrealized unwinding uptrend whipsaw whipsaws""",
    (" w", 4): """
        squeezed squeezing strengthening""",
    ("", 4): """
        autocorrelation perpetuals""",
}
"""Words by the forms in which they are one token (after a space, alone, capitalised), and the tokens otherwise."""

_SYMBOLS: Mapping[int, str] = {
    1: """
        ADA AMD AUD BB BTC CAD CEO CL DOT ES ETF ETH EUR GBP GC HH HL LINK LL META OP RR SL Sim TP USD UTC""",
    2: """
        AAPL AAVE ADX AMZN APT ARB ATOM ATR AUDUSD AVAX BAC BCH BNB BRL BTCUSD CHF CNY CPI CVD DIA DOGE DXY ECB EMA
        EOD ETHUSD EURUSD FIL GBPUSD GDP ICP INR INTC IPO IWM JPM JPY KRW LH LTC MACD MAE MATIC MFE MSFT MXN NDX
        NEAR NFLX NFP NOK NQ NVDA NZD OBV OI PEPE PERP PNL POC PPI QQQ RSI SEK SHIB SMA SOL SPX SPY SUI TON TRX UNI
        USDC USDT VIX XOM XRP""",
    3: """
        BTCUSDT ETHUSDT EURJPY FOMC GBPJPY GOOGL NZDUSD PnL TSLA USDCAD USDCHF USDJPY VWAP XAGUSD XAUUSD""",
    4: """
        SOLUSDT XRPUSDT""",
}
"""Symbols and terms in capitals, after a space and alone."""

_RULES: Mapping[int, str] = {
    1: """
        account cap check count data day engine entry event exit high invalid limit long low max min net not only
        open order over per position price rate rule session short side size step stop target time total unknown
        value window""",
    2: """
        age allowed already asset balance band blocked breaker cash close closed conflict daily disabled distance
        fee fees funds gross halt halted hours kill large limits loss lot margin market maximum minimum missing news
        paused pct pending percent pnl positions profit quote range ratio required risk same small spread stale
        streak switch symbol take tick timeout too trade trades trading under usd volume""",
    3: """
        breach budget concentration cooldown correlation deviation equity exceeded expired exposure funding guard
        instrument leverage losses notional orders reduce rejected slippage weekly""",
    4: """
        circuit consecutive drawdown duplicate insufficient portfolio turnover violation volatility""",
    5: """
        liquidation liquidity""",
}
"""Words of risk engines in capitals: alone, after a space, after a `_`."""

_JOINED: Mapping[int, str] = {
    1: """
        -generated -band -month -day -bar -level -line -loss -risk -up -size -market -top -bottom -end -to -even
        -wide -year -key -hand -run _up _down _loss _id -start -over -off -in -out -low -high -term -frame -time -back
        -down -through -based -volume -minute -hour -week -buy -long -short -side -by -of -on -tested -and""",
    2: """
        -move _lowvol =trend =unknown =none -revert -reversion -trend -sell -weighted /short /long""",
    3: """
        _hivol =chop /MAE""",
}
"""Words together with the mark before them."""

_MARKS: Mapping[int, str] = {
    1: (
        "\n\n¦ !¦ \"¦ #¦ ##¦ $¦ %¦ &¦ '¦ (¦ (\"¦ ($¦ ('¦ (+¦ (-¦ *¦ **¦ +¦ ,¦ -¦ --¦ ->¦ .¦ .\n¦ ...¦ /¦ :¦"
        ' ;¦ <¦ <=¦ =¦ ==¦ >¦ >=¦ ?¦ @¦ [¦ \\¦ \\"¦ `¦ {¦ ~¦ ±¦ ·¦ ×¦ –¦ —¦ •¦ …¦ …\n\n¦ ←¦ →¦ −¦ ≤¦ ≥¦!"¦'
        '"\n¦"\n\n¦")¦").¦",¦".¦":¦";¦##¦###¦$$¦%\n¦%\n\n¦%"¦%)¦%),¦%).¦%,¦%.¦%;¦("¦($¦()¦(-¦)\n¦'
        ')\n\n¦)"\n¦)",¦),¦).¦).\n¦)."¦):¦):\n¦);¦+$¦,\n¦,"¦,$¦--¦->¦.\n¦.\n\n¦."¦."\n¦.)¦.,¦...¦//¦'
        ':\n¦:\n\n¦:"¦://¦;\n¦<=¦="¦=$¦=-¦==¦>=¦?"¦\\"¦£¦±¦·¦×¦–¦—¦’¦“¦”¦•¦…¦…\n\n¦…"¦€¦←¦→¦−'
        '¦ |¦ |\n¦","¦":"¦":["¦":{"¦":[¦["¦{"¦"]¦"],¦"]]¦",-¦","+¦,-¦:["¦"}¦"},'
    ),
    2: '"],["¦],["¦",["¦","-¦…"\n\n¦ %),¦ %:¦%)\n¦…"\n¦=+$¦=-$¦ +$¦%)"¦ -$¦ "…"¦%…¦%).\n',
}
"""Runs of marks with the space before and the newlines after them, separated by `¦`."""

_BLOCKS = """
    0900-0aff 0b80-0ebf 0f00-0f7f 1000-103f 10c0-10ff 1780-17ff 1e80-1eff 2000-20bf 2100-21bf 2200-227f 2440-247f
    2500-267f 2700-27bf 3000-30ff 3140-317f 4e00-507f 50c0-50ff 5140-547f 54c0-55bf 56c0-577f 57c0-597f 59c0-59ff
    5b40-5cbf 5dc0-607f 60c0-613f 6200-63ff 6440-64bf 6500-687f 68c0-68ff 6940-697f 6b00-6f3f 7040-707f 7100-713f
    7200-727f 7380-743f 7500-757f 7640-777f 7840-78bf 7900-7bff 7c40-7cbf 7d00-7d7f 7e80-7fbf 8000-80ff 81c0-837f
    83c0-843f 8640-867f 8840-88ff 8980-8abf 8b40-8dff 8f40-90ff 91c0-91ff 9300-933f 9480-977f 9800-98ff 9980-99bf
    9a40-9a7f 9ec0-9eff 9f80-9fbf ac00-acff ad40-ad7f adc0-ae7f b080-b0bf b100-b17f b280-b2ff b340-b37f b3c0-b43f
    b4c0-b53f b780-b87f b8c0-b8ff b940-b9ff ba40-babf bbc0-bc3f bc80-bcff bd80-bdbf be00-be3f c080-c1bf c280-c2ff
    c540-c7bf c800-c83f c900-c93f c980-c9ff cc00-cc3f cc80-ccbf cd80-cdbf ce40-ce7f d040-d07f d0c0-d13f d280-d2bf
    d300-d33f d540-d57f d600-d67f f080-f0bf fe00-fe3f ff00-ffff"""
"""Ranges of three-byte characters, in hexadecimal, whose first two bytes together are a token."""

_LETTERS: Mapping[str, str] = {
    "ab": """
        a:abcdefghijklmnopqrstuvwxyz b:abcdefghijklmnoprstuvwxyz c:abcdefghijklmnopqrstuvwxyz
        d:abcdefghijklmnopqrstuvwxyz e:abcdefghijklmnopqrstuvwxyz f:abcdefghiklmnopqrstuvwxy
        g:abcdefghilmnoprstuvwxyz h:abcdefghiklmnopqrstuvwxyz i:abcdefghijklmnopqrstuvwxyz j:abcdefhijklmnopqrstu
        k:abcdefghijklmnoprstuvwy l:abcdefghijklmnoprstuvwxyz m:abcdefghijklmnopqrstuvwxy
        n:abcdefghijklmnoprstuvwxyz o:abcdefghijklmnoprstuvwxyz p:abcdefghijklmnopqrstuvwxyz q:abcdehilmnpqrstuwx
        r:abcdefghiklmnopqrstuvwxyz s:abcdefghijklmnopqrstuvwxyz t:abcdefghiklmnoprstuvwxyz
        u:abcdefghijklmnoprstuvwxyz v:abcdefghijklmnoprstuvwxy w:abcdefghijklmnoprstuwxy x:abcdefilmnoprstxyz
        y:abcdeghiklmnoprstuwxyz z:abcdefhiklmnopstuwxyz""",
    " ab": """
        a:abcdefghijklmnoprstuvwxyz b:abcdefghijklmnoprstuvwxyz c:abcdefghijklmnopqrstuvwxyz
        d:abcdefghijklmnopqrstuvwxyz e:abcdefghijklmnopqrstuvwxyz f:abcdefghijklmnopqrstuvwxy
        g:abcdefghijlmnoprstuvwxyz h:abcdefghijklmnoprstuvwxy i:abcdefghijklmnopqrstvwxyz j:abcdeijlmopqrstu
        k:abcdeghijklmnoprstuvwyz l:abcdefghijklmnoprstuvwxy m:abcdefghijklmnopqrstuvwxyz
        n:abcdefghijklmnoprstuvwxyz o:abcdefghiklmnoprstuvwxyz p:abcdefghijklmnopqrstuvwxy q:abcipqrstuw
        r:abcdefghiklmnopqrstuvwxyz s:abcdefghijklmnopqrstuvwxyz t:abcdefghijklmnopqrstuvwxyz
        u:abcdefghiklmnprstuvwxyz v:abcdefghiklmnoprstuvwxyz w:abcdefghiklmnoprstwxyz x:abcdefilmnoprstuvxy
        y:aceginoprsty z:abdeghikmnosuwxz""",
    "AB": """
        a:abcdefghijklmnopqrstuvwxyz b:abcdefghijklmnoprstuvwxy c:abcdefghiklmnoprstuvwxy d:abcdefghijklmnoprstuvwxy
        e:abcdefghiklmnopqrstuvwxz f:abcdefghiklmnoprstuwxy g:abcdefghilmnoprstuvwxy h:abcdefghiklmnopqrstuvwxyz
        i:abcdefghijklmnopqrstuvwxz j:abcdeijkmoprstv k:abcdefghiklmnoprstvwy l:abcdefgiklmnoprstuvy
        m:abcdefghijklmnopqrstuvwxy n:abcdefghijklmnoprstuvwxyz o:abcdefghiklmnoprstuvwx p:abcdefghijklmnoprstuvwxy
        q:abcelmnpqrstu r:abcdefghiklmnoprstuvwxy s:abcdefghijklmnopqrstuvwxyz t:abcdefghiklmnoprstuvwxyz
        u:abcdefgiklmnprstuvxy v:abcdefgiklmnoprstv w:abcdefghiklmnoprstwx x:abcdefilmprstxy y:aceglmnopstwyz
        z:aefhnorwxyz""",
    " AB": """
        a:abcdefghijklmnopqrstuvwxz b:abcdefghijklmnoprstuvwxy c:abcdefghijklmnoprstuvwxyz
        d:abcdefghijklmnoprstuvwxy e:abcdefghilmnopqrstuvwxz f:abcdefghiklmnoprstuwxy g:abcdefghiklmnoprstuvwx
        h:abcdefghiklmopqrstvwy i:abcdefghiklmnopqrstuvwx j:abcdejklmoprstvw k:abcdeghklmnoprstvwy
        l:abcdefghijlmnoprstuvwxy m:abcdefghijklmnopqrstuvwxy n:abcdefghijklmnoprstuvwxyz o:abcdefghklmnoprstuvw
        p:abcdefghijklmnopqrstuvwxy q:abceqrstu r:abcdefghijklmnoprstuvwx s:abcdefghijklmnopqrstuvwxyz
        t:abcdefghijklmnoprstuvwxyz u:abcdefiklmnprstvwx v:abcefghiklmnoprstwx w:abcdefghiklmprstvwx
        x:bcdfiklmoprstvxy y:aemy z:xz""",
    "Ab": """
        a:bcdfghijklmnoprstuvwxyz b:aegilorsuy c:abcdehilorsuxy d:abeiorstu e:bcdfklmnpqrstuvxy f:acdeilnorsux
        g:abeilorsu h:aeiopuyz i:dfklmnoprstx j:aeosu k:aehinry l:aefinotuvy m:abcdeioprstuy n:abdeghimorsuxy
        o:bdfhiklmnprst p:aeghiklorstuxy q:itu r:aehopsux s:acehiklmnopqrtuwyz t:adehikoprsuvwxy u:bhilmnprst
        v:aeikmosuy w:aehiorsy x:di y:aeou z:eh""",
    " Ab": """
        a:bcdefghijklmnoprstuvwxyz b:adehijlorsuy c:adefhiloprstuvy d:abehijortuwxy e:abcdfghjklmnpqrstuvxyz
        f:aeilnorstu g:aehilnoruy h:adeiopuvyz i:bdfghklmnoprstvz j:aeiorsu k:aeghilmnoruvwy l:aeinotuvy
        m:abcdegiknoprstuy n:abdeghioruxyz o:bcdfghklmnprstuwxz p:abcefghilorstuvxy q:itu r:acdehiopstuxy
        s:acehiklmnopqrtuvwyz t:abefhikorsuvwxy u:bdghiklmnprst v:aeikosuy w:aehioruy x:imtu y:aeiou z:aehiouwy""",
    "abc": """
        aa:acdlnrt ab:abcdehilorsy ac:acdefhiklorstyz ad:abcdehijmorstvxy ae:acds af:abdefisx ag:aeghinorstuy
        ah:ailnoru ai:dlmnrst aj:aeiosu ak:aehikostuy al:acdefgiklmostuy am:abdeilmopstuy an:acdeghijknostyz
        ap:aehikloprsty aq:u ar:abcdefgiklmnoprstuy as:acdehiklmnopstuyz at:aehiklorstuyz au:bcdfglrstx av:aeginorsy
        aw:aiklnsy ax:ey ay:aeos az:aeiouyz ba:bcdghklmnorstuyz bb:bce bc:c bd:d be:bcdefghiklnrstw bf:d
        bi:abcdegjlnorstz bl:aekor bm:p bn:b bo:ablnorstwxy bp:s br:aeou bs:dt bt:cn bu:dfglmrsty by:en
        ca:bcdflmnoprst cb:c cc:abcdio cd:cfnr ce:abcdefjklmnprsu cf:fg cg:i ch:aegiklnorstuwy ci:adelnoprst
        ck:aeiost cl:aefikrs cm:bdps cn:t co:delmnprstuvwx cp:fpuy cr:ceimoy cs:rsv ct:alprsx cu:elmprst cw:d cz:y
        da:cdefglmnopqrsty db:cghlo dc:c dd:abdelsy de:abcdefgklmnoprstvxz df:as dg:e di:acdefgmnorstv dl:gl dm:a
        dn:ais do:bcgimnst dp:i dr:aeovy ds:lnt dt:o du:cekprx dy:n dz:i ea:dmnrtx eb:ab ec:acdehinostz ed:adeiosuy
        ee:delnrs ef:adefst eg:aglot eh:r ei:dln ek:aiost el:adefilmnopstuy em:abdeimopsuy en:acdeghiknostuvyz ep:sy
        eq:u er:abcdegikmnoprstvy es:acehikopstyz et:acehiorstuyz eu:rs ev:aet ew:ns ex:ceopt ey:ae fa:bcdflnqrstvx
        fc:c fd:s fe:abcdelnrw ff:acdefit fi:bcdglnrtx fl:dotuy fm:t fo:lnorsx fp:s fr:aem fs:pt ft:epsy fu:lnr
        ga:elmnprsy gb:a gc:c ge:bdehlmnorstw gf:x gh:it gi:adeflnost gl:eimy gm:t gn:eu go:dmnorstvw gp:su gr:aeop
        gs:t gt:ek gu:aein ha:bdilmnprsty hc:p hd:lr he:adeiklmnrstvxy hh:h hi:bcdlmnprst hm:a ho:acefglmnprstuw
        hp:p hr:as ht:aeit hu:abdms hy:p ia:cdehlmnoprstz ib:aeiorstu ic:acehiklostyz id:adefilosxy
        ie:cdfgijklmnrstuvwz if:aefiorstuy ig:aeghimnorstuy ih:u ii:di ij:adeiknou ik:aehikostu il:adeiklmosty
        im:abdegimopsu in:acdefghiknopqstvxyz io:cdlmnrstuvx ip:acehilopstvy iq:u ir:acdeiklmoqsty
        is:acdehiklmopstuyz it:aehimorstuyz iu:ms iv:aeiory ix:aeo iy:a iz:aeioruz ja:bcdhklmnrsvwxy jd:k
        je:cejmnrst ji:denst jm:p jn:i jo:bmnsy jp:g js:px ju:dgnr jw:t ka:dhlnprst kb:d ke:adehlnrsty ki:delmnprt
        kk:e kl:e ko:aklmnprsv kr:e ks:i kt:e ku:lrs la:bcdghmnprstvwy lb:ls lc:d ld:abrs le:acdefghikmnoprstvwxyz
        lh:s li:abcdegjkmnopstv ll:adeiu ln:g lo:bcdeghklnoprstvwx lr:t ls:aeitx lt:ekr lu:agstx lv:l ly:ans
        ma:cdfghijklnprstxy md:bil me:dgklmnrstz mg:r mi:acdelnrstx ml:x mm:am mn:t mo:bdlmnrstvz mp:hilr ms:g mt:s
        mu:ilnrstx mv:c my:ps na:dhklmnprstvz nb:r nd:aelos ne:adeghjklnorstvwyz ng:aeorx ni:acdehklmnopst
        no:cdfmnprstvw np:cjm ns:t nt:ehlsy nu:mt ny:am oa:d ob:abeijlosy oc:acehiklorstyz od:abdeiosuy oe:ns
        of:fist og:aeghilnorsy oh:aln oi:dlnrst oj:i ok:aeiosu ol:adefgiklostuvy om:abeimopsy on:adeginostyz
        oo:dklmnoprt op:acehiloprsty or:abcdefgikmnoprstuyz os:acehilopst ot:aehioprst ou:bdgilnprstvx ov:aeioy
        ow:aeilnosy ox:y oy:ao oz:ey pa:cdgiklnrsty pb:s pc:bhims pd:fo pe:cdegiklnqrstz ph:aeipy pi:cdegnoprstx
        pk:gt pl:aelsty pn:g po:dilnprstw pp:eosty pr:adeiost ps:cityz pt:aehorsy pu:bnrst pw:d qi:d ql:i qm:l qr:ty
        qt:ty qu:aeios ra:bcdfghijlmnpqrstwxyz rc:h rd:f re:abcdefghiklmnopqrstuvwxyz rg:b rh:os
        ri:abcdefgjklmnoprstvxz rn:adeg ro:bcdegiklmnprstuvwxyz rp:cm rs:apst rt:cl ru:bdgkmnpstz ry:ns sa:dlmnprtvy
        sc:hpr sd:k se:acdegiklmnopqrstxy sg:i sh:aeir si:cdeglmnpstx sk:biuy sl:a sm:s sn:ds so:clmn sp:adeilory
        sq:l sr:cv ss:acfhilpst st:adehikmorsuy su:bmnprst sv:cgnp sy:mns ta:bglmnprstux tb:l tc:p te:acdeklmnprstx
        tg:l th:aersy ti:cdelmnpt tl:es tm:lp to:acdgiklmnoprsty tp:l tr:aeilosuxy ts:xy tt:eilpy tu:r tw:o tx:nt
        ty:p ua:lnrt ub:abeiosy uc:cehikostz ud:adeiopsuy ue:dlmnrstz uf:efst ug:aeghiosu uh:eln ui:bdlnrst uj:aeu
        uk:aeiotu ul:adefgiklopstuy um:abdeilmnopsu un:acdegijknostu uo:s up:adeopsty ur:abdefgilmnorstuy
        us:abcehikoprstuz ut:acefhimorstyz uu:mr uv:eow ux:e uy:aeo uz:euz va:ceklnrst ve:cdhlnrstyz
        vi:acdegklmnoprstz vo:dlnrsxy vp:n vr:eo vs:p vt:k vu:e wa:lnprstvy we:bdgilnr wh:oy wi:degjklnst wn:d
        wo:norw ww:w wy:n xa:abcdef xb:abcdef xc:abcdef xd:abcdef xe:abcdefs xf:abcdef xh:r xi:acnstv xl:s xm:l
        xo:nr xx:x xy:z ya:hlnrstw yc:hlz ye:nrst yi:i yl:ael ym:eim yn:aceny yo:nru yp:ey yr:e ys:itz yt:ht yu:mn
        yy:y za:cgnprs ze:dejklmnrstw zi:aegknp zo:ns zt:e zu:g zy:m zz:ao""",
    " abc": """
        aa:an ab:abcilsy ac:cehklt ad:abcdejmorsv ae:rs af:flrt ag:egor ai:dlmnors ak:aotu al:bcdefgiklmost
        am:abdiopty an:acdgiknostvxyz ao:s ap:aehikloprt aq:u ar:bcdegkmprty as:chikmst at:aehlmrt au:cdfgnrstx
        av:aegi aw:eks ax:es az:it ba:bcdghjklmnrstyz bb:w bc:m be:bdefghiklmnrstvwyz bf:s bi:bcdfgjklnoprstz
        bl:aeiko bm:ip bo:abdglmnorstuwxy bp:my br:aeiou bs:t bt:cnw bu:bcdfglmnrstyz by:e bz:w ca:bcdflmnprstvz
        cb:do cd:s ce:lnprst cf:g ch:aeikoru ci:cdfglnrstv cl:aefikors cm:bdps cn:nt co:bcdfghlmnprstuvwyz cp:fpsu
        cr:aceiotuy cs:rsv ct:lrx cu:bcdeiklmprstz cv:s cw:d cy:clnt cz:y da:bcdghiklmnoprstuvy db:cglo dd:l
        de:bcdefgijlmnprstvwxz df:s dg:v dh:e di:abcdefgklmnoprstvyz dl:agl dm:ag dn:ais do:bcdegiklmnprstuvw dp:i
        dr:aeimovy ds:pt dt:o du:abegklmnoprst dv:d dy:ens dz:i ea:grstx ec:chost ed:imtu ee:nr ef:f eg:goy ei:dgn
        ek:s el:aefklmost em:bop en:cdfghnrstv eo:fs ep:s eq:lu er:abefghkmnorsuvwy es:aceikopst et:acht eu:px ev:et
        ex:cehpt ey:e fa:bclmnrstvxz fe:cdelmnrtuw ff:it fi:bcdefglmnrstxz fl:adeouy fm:t fo:cdegilnorstux fp:s
        fr:aeimoy fs:t ft:p fu:eglnrst ga:bdglmnprsyz gb:c gc:cd gd:y ge:bdefghklmnoprstvwz gf:x gi:abdfgmnort
        gl:eimouy go:bdlnortuv gp:su gq:l gr:adeiop gs:lt gt:k gu:ilmnty gy:mr ha:bcdiklmnprstvyz hd:r
        he:bdgilmnprstxy hi:cdjlmnpst hm:m ho:bcdeglmnprstwy hr:s hs:v ht:t hu:bdeghmnrst hv:a hy:mp ia:mr ic:ehiy
        id:eisx if:f ig:n ih:mnr ii:di il:eikls im:abegmpsu in:cdefghijknpstv io:dns ip:csv ir:emqr is:aceilnopst
        it:hkmrsu iv:e ja:bcgklmnprvw je:dgjlrstuw ji:gmt jo:begnstuvy jp:g js:x ju:bdeglnrs jw:t ka:bdklmnoprstyz
        ke:dlmnprsty kh:io ki:dlmnrt kl:ae km:s kn:e ko:bdklmnprst kr:ae ks:i ku:klnprt la:bcdghkmnprstvwxyz lb:ls
        lc:d ld:ac le:degimnorstvxy lh:s li:abcdefgjklmnpstv ll:e ln:g lo:bcdgiklnrstuvw ls:t lt:d
        lu:abcdgiklmnprtxz lv:l ly:nrs ma:cdghijklmnprstuvxy md:il me:cdegjlmnrstuxz mg:ar mi:acdegjklmnoprstx ml:x
        mo:bcdgilmnoprstuvyz mp:ghil ms:egm mu:cdgjlmnrstxy my:s na:bdghjklmnoprstuvwz nb:r ne:bcdfghilmnoprtuwx
        nf:l ng:ax ni:bcdegklmnprt no:bcdegikmnprstuvw np:cm nt:ho nu:degmnrt nx:t ny:ae oa:kt ob:ejlrst oc:cht
        od:dep of:fst og:lr oi:dl ol:dei om:anp on:cest oo:k op:cprst or:abdegimnot os:cgpst ot:pt ou:dirt ow:eln
        ox:y pa:cdgijklmnprstuvwyz pc:bilmst pd:bf pe:acdeglmnprstuw ph:ipy pi:cdegijklnprstvx pk:gt pl:acelsty
        pn:egl po:bcdgijklmnoprstuvwz pp:lmt pr:aeimovyz ps:ityz pt:rs pu:bdlnprst pw:dm py:lmst qe:d qo:s qr:y qt:y
        qu:aeio ra:bcdgjkmnprstvwyz rd:fr re:bcdfgjklmnpqrstvwxz rg:b rh:eos ri:bcdfgjmnopstv rm:s rn:dg
        ro:bcdgilmstuwyz rp:cmt rs:apst rt:celn ru:abdegmnst sa:bcdfgiklmnprtuvwxy sc:ehilmor sd:fk
        se:acdeghiklmnopqrstuwxz sh:aemory si:acdegklmnprstxz sk:abeiluy sl:aeou sm:beos sn:deos so:bcdfgklmnoprsuwy
        sp:aehilopry sq:lu sr:cv ss:hl st:adekmorsuy su:abcdefgiklmnoprst sv:cegmno sw:eo sy:mns sz:y
        ta:bcdghiklmnprstuvx tb:l tc:p te:adeghjklmnprstx tg:t th:aeioruy ti:cdeklmnprt tl:s tm:p
        to:bcdegiklmnoprtuwxy tp:hl tr:aegioxy ts:lpt tt:kly tu:abdglmnoprst tw:eo tx:nt ty:mprs uc:z ud:p ug:l
        ui:dt ul:lt um:abp un:acdefghiklmnorstw up:dpst ur:begiln us:abeortu ut:cf uu:r va:cdgiklnprst
        ve:cdghjlmnrstxz vi:abcdeglmnprstvz vo:cgilmnrstuwxyz vp:n vr:a vt:k vu:el wa:ghlnrstvxy we:bdegilnrst
        wh:eoy wi:degjklnrst wn:d wo:lmnorw ws:pz wu:r ww:w wy:mns xe:n xh:r xm:lm xo:r xs:i xx:x xy:z ya:knpwyz
        yd:k ye:nrst yi:i yo:gklu yr:s yu:mp za:bdgjklmprw ze:nr zi:egjp zo:ou zu:gmnrs zw:e zz:a""",
    "ABC": """
        aa:acdfp ab:abcils ac:acehklpsty ad:abcdefimorsvx ae:as af:efpx ag:eor ai:lnrt ak:e al:aeklst am:abdeilps
        an:acdegiknosty ap:aehipst ar:abcdegikmnprsty as:acefhikmnpsty at:aehost au:dt av:ae aw:s ax:b ay:s az:y
        ba:bdlrt bb:c be:dlr bi:gnt bl:e bm:iw bo:rtx bs:dt bt:cn bu:fgmrsy ca:acdflmnprst cb:cds cc:acir cd:cf
        ce:deflos cf:g ch:aekor ci:d cl:aeikrsu cm:dps cn:nt co:dlmnr cp:fpu cr:cemt cs:irsv ct:lrsx cu:rs da:cloqty
        db:cg dc:f dd:dlrs de:cdflmnrstvx df:s di:gmrsv dl:l dm:a dn:as do:bcgmnt dr:v ds:lp dt:do dv:d ea:r ec:ht
        ed:ai ee:ekp ef:fir ei:f el:lsy em:apsuy en:acdegnostuv eo:fs ep:s er:acemnoprstvy es:achpst et:afhosy eu:r
        ex:pt fa:q fd:a fe:r ff:eft fi:gntx fl:t fo:rx fp:s ft:ap fu:ln ga:n gb:pt ge:dnrst gi:ns gl:e gm:t gn:u
        go:r gp:lsu gr:e gs:t gt:k gu:i ha:lmsv hd:r he:lry hi:pr ho:w hs:v hu:d ia:lmns ib:cem ic:acehikosty
        id:adeilosx ie:dlrsw if:aefiosty ig:hno ii:di ik:e il:adeilt im:aegops in:acdefgikostuvy io:cdnrs ip:achps
        ir:acdemoqst is:acehkmoprst it:aehostuy iv:aeo iz:e jn:i jo:br jw:t ke:nry kh:r ki:t la:bnsty lb:l lc:d
        le:degmnrstvxy li:bkn ll:u lo:bcgstwy lt:er ma:cnprstx md:b me:admrst mi:cnt ml:es mm:cm mo:dnv mp:i mr:i
        ms:cg mu:x na:lsv nb:c ne:glrstwy nf:l ni:c no:nptw np:c ns:t nu:m ob:j oc:ikr od:beoy of:f oi:d ol:adeflst
        om:bep on:adegosty oo:dkmt op:sty or:abdegkmnsty os:cehpt ot:aehopst ou:nrst ov:e ow:ln pa:dlrty pb:s
        pc:imrs pd:fo pe:cdgrt ph:apy pi:cdnox pl:ely pm:c pn:g po:lprs pp:p pr:eios pt:rsy pu:rt pw:dm qu:ei
        ra:dlmrw rc:t rd:d re:acdefglmnpqstv rf:c rg:b ri:acd rn:a ro:cilmnpstwy rp:c rs:as rt:cl ru:n sa:mnt sc:ir
        sd:kl se:acdeglmopqrstx sh:a si:dgm sk:u sm:s so:cnr sp:ai sq:l sr:c ss:fhil st:ademrs su:bmpr sv:g sy:ms
        ta:bg tc:p te:delmrs th:e ti:m tl:s tm:p to:nprt tp:l tr:aly tt:y tx:t ua:l ub:el uc:ehkt ud:aop ue:ls uf:f
        ug:eh ui:dlst ul:adelot um:bep un:cdegkt up:s ur:aeilny us:abdehrt ut:cefho va:lrs ve:dlnrs vi:dnps vm:l
        vp:n wa:ry we:br wh:o wi:n wn:d ww:w xh:r xm:l xx:x xy:z ye:s yl:e yn:c yo:u yp:e ys:t yt:e yy:y zi:p""",
    " ABC": """
        aa:ac ab:cis ac:aceklmst ad:acdmsv ae:s af:cflp ag:e ai:mrs al:lst am:acdps an:cdnty ao:l ap:acikprs
        ar:cegmrt as:acdefmnpst at:ahilmpstv au:dgtx av:cglr aw:s ba:bdlmrst bb:bcq bc:ehm be:dlnrt bf:s bi:gnot
        bj:p bl:e bm:ipw bo:tx bp:m br:aeo bs:dpt bt:cns bu:fgsty ca:bdlmnprst cb:cds cc:cdps cd:cn ce:lost cf:glor
        cg:i ch:e ci:adfmst cl:ikr cm:dps cn:cns co:dlmnprs cp:acfilprsu cr:acemst cs:acilprstv cu:rt cv:s cw:e
        da:cglmnorty db:g dd:rs de:acflmnrstv df:as dh:s di:degmnrsvy dl:cl dm:a dn:as do:ceijmnst dp:irs dr:m
        ds:lmpt dt:o du:ip dv:dr ea:r ec:bcms ed:mt ee:g ef:i eg:l ei:f el:f em:cps en:cdgtv eo:fs ep:as er:acpr
        es:aclpt et:afh eu:r ev:pt ex:pt fa:acgqrt fb:i fc:c fd:a ff:t fh:a fi:glnrtx fo:rx fp:s fr:e fs:m ft:cp
        fu:n ga:lmprs gb:p gc:c gd:p ge:nort gf:p gi:frs gm:cot gn:u go:dpt gp:alsu gr:e gs:mt gt:akx gu:i ha:lrs
        hb:o hd:dr he:lrx hi:dmpstv hm:s ho:lrtw hp:v hs:v ht:c hu:d ia:m ib:m ic:ceotu id:cemsx ig:n ii:di
        im:fgmops in:acdfstv io:cs ip:aclostv ir:acqs is:acoprst it:sv ja:n jf:k jm:p jn:i jo:b jp:g js:x ju:l jv:m
        jw:t kd:e ke:y la:bnpstw lc:d ld:ls le:dgnst li:bcns ll:cp ln:g lo:cglstw lp:c ls:du lt:cde lu:a
        ma:cdgklnprstvxy mb:a mc:cpu md:b me:dmnrst mg:m mi:cdlnstx ml:abms mm:acmo mo:dmnrstvz mp:cghilu mr:i
        ms:cdgimpst mt:v mu:t mv:cp na:nstv nb:ac ne:cgstw nf:cl ng:o nh:ls ni:chl no:imnrtw np:cr nr:af ns:afkstw
        nt:n nu:m ny:c ob:js oc:cdirt oe:m of:f ol:d om:gx on:e op:cst or:dm os:cstx ot:ap ou:rt ow:n pa:cdlnrsty
        pb:s pc:abimrs pd:fot pe:dmnrt pg:a ph:py pi:cdelntx pl:acl pm:c pn:g po:dlprstvw pp:cp pr:eio ps:adgiptu
        pt:r pu:brt pv:c pw:m qu:ei ra:dfmtw rb:i rc:ac rd:f re:cdfglmpstv rf:c rg:b rh:s ri:dp rm:s rn:ag ro:cimstw
        rp:cgm rs:as rt:clps ru:n rv:a sa:cflmnprstxy sc:chimoprt sd:kls se:aceglmnoprstx sg:d sh:aer si:dglmnpx
        sk:fu sm:abeps sn:p so:clmnps sp:adefilr sq:l sr:c ss:acdehlprt st:adelmr su:bmnprsv sv:gn sw:t sy:ns
        ta:bgmrsx tb:d tc:lp te:dmnrx tf:t th:ce ti:m tl:cs tm:pz tn:t to:dkmopr tp:m tr:eiy ts:ar tt:cl tw:o tx:t
        ua:ev uc:s ud:p uf:co ui:dfglpst un:csu up:cs ur:il us:abcdes ut:cf va:lnrt ve:r vg:a vi:acdinprs vl:c vo:cl
        vp:n wa:lnrsvy we:b wh:oy wi:n wo:mnw wt:fo ww:ew xc:t xi:iv xm:l xo:r xv:i xx:x xy:z ye:s yo:u zi:p""",
}
"""Pairs and triples of letters that are one token, by form: `ab:cd` means `abc` and `abd`."""


def _costs() -> Iterator[tuple[str, int]]:
    for cost, pieces in _MARKS.items():
        yield from ((piece, cost) for piece in pieces.split("¦"))
    for cost, text in _JOINED.items():
        yield from ((piece, cost) for piece in text.split())
    for cost, text in _RULES.items():
        yield from ((before + word.upper(), cost) for word in text.split() for before in ("", " ", "_"))
    for cost, text in _SYMBOLS.items():
        yield from ((before + symbol, cost) for symbol in text.split() for before in ("", " "))
    for (single, others), text in _WORDS.items():
        forms = {form: 1 if form in single.split("|") else others for form in (" w", "w", " W", "W")}
        yield from ((_formed(form, word), cost) for word in text.split() for form, cost in forms.items())


def _formed(form: str, word: str) -> str:
    return form.replace("w", word).replace("W", word.capitalize())


def _grams() -> Iterator[str]:
    for letter in ascii_letters:
        yield f" {letter}"
    for form, text in _LETTERS.items():
        for starts, ends in (entry.split(":") for entry in text.split()):
            yield from (_cased(form, starts + end) for end in ends)


def _cased(form: str, letters: str) -> str:
    space, form = form[: form.count(" ")], form.strip()
    return space + (letters if form.islower() else letters.upper() if form.isupper() else letters.capitalize())


SAVING = "".join(f"\\u{first}-\\u{last}" for first, last in (block.split("-") for block in _BLOCKS.split()))
"""The same ranges as a regular-expression class: none of these characters takes three tokens."""
LONGEST_GRAM = 4


@cache
def costs() -> Mapping[str, int]:
    """The tokens of a whole piece."""
    return dict(_costs())


@cache
def grams() -> frozenset[str]:
    """Letters, with or without a space before them, that are one token."""
    return frozenset(_grams())
