"""The words the rules know: verbs of request, names of things made, and the pronouns that stand for them.

Agents' skills are open-ended, so these words say nothing of what is asked for. They only tell where one request ends and the
next begins, and whether it builds on the one before.
"""

from __future__ import annotations

import re


def words(text: str) -> frozenset[str]:
    """A set of words from a block of text."""
    return frozenset(text.split())


def alternatives(options: frozenset[str]) -> str:
    """A regular expression that matches any of the words, longest first."""
    return "(?:" + "|".join(sorted((option.replace("_", r"\s+") for option in options), key=lambda word: (-len(word), word))) + ")"


PLAIN_VERBS = words(
    """
    add adjust advise aggregate analyse analyze answer append apply arrange ask assemble assess assist average balance
    bring browse build buy calculate categorise categorize choose cite clarify classify clean collect combine compare
    compile complete compose compress compute conclude condense conduct construct convert copy correct correlate count
    crawl create decide decode deduce deduplicate define deliver demonstrate depict deploy derive describe detect
    determine develop devise diagnose discuss divide double download draft draw edit elaborate email embed encode
    encrypt enumerate estimate evaluate examine execute explain explore export extract fetch fill find fix flag format
    formulate gather generate get give go_through grab halve hash highlight identify illustrate implement infer
    inspect integrate interpret introduce investigate join justify lay_out learn list load locate look_at look_for
    look_into look_up make measure merge minimise minimize modify multiply normalise normalize obtain open optimise
    optimize organise organize outline paraphrase parse perform pick pinpoint plot point_out post predict prepare
    present print prioritise prioritize produce proofread propose prove provide publish pull pull_out put put_together
    quantify raise rank rate read recommend refactor remove render rephrase replace research resize resolve retrieve
    return reverse rewrite run save scan scrape search select send separate show simplify simulate sketch solve sort
    spell split spot store strip subtract suggest sum_up summarise summarize synthesise synthesize take tally teach
    tell tidy total_up trace train transcribe transform translate triple turn uncover update use validate verify visit
    visualise visualize work_out write
    """
)
"""Verbs that hardly ever are nouns where a request begins."""

NOUN_VERBS = words(
    """
    book call challenge change chart check code comment contrast critique design document escape export filter
    forecast graph group import label map mark model name note order plan process profile project quote rate record
    report review round sample schedule score script state study sum survey table tag test total track trend view
    """
)
"""Verbs that are as often nouns: verbs only if an object follows."""

QUESTION_WORDS = words("what which who whose whom when where why how")
AUXILIARIES = words("is are was were does do did can could should would will has have had")

REPORTS = words(
    """
    article brief briefing conclusion dashboard digest document email essay handout letter memo newsletter overview
    page paper post presentation recap report story summary write-up writeup
    """
)
"""Things made of whatever there is: without an object of their own they take everything before them."""

CHARTS = words(
    """
    barchart boxplot chart diagram drawing figure graph heatmap histogram image infographic map picture plot
    scatterplot sparkline visualisation visualization
    """
)
PRODUCTS = (
    REPORTS | CHARTS | words("table list ranking translation comparison forecast analysis explanation script poem quiz outline")
)
"""Things that are handed over: two of them in one sentence are two requests."""

PREPARING = words("load open read import take use look_at go_through parse inspect grab get consider")
"""What is only done to a file in order to do something else with it."""

FETCHING = words(
    "fetch download get scrape crawl retrieve find search look_up look_for locate visit grab pull collect gather browse open read"
)
"""What yields the very thing a following pronoun means."""

EXAMINING = words(
    """
    analyse analyze average calculate check compute count describe detect determine extract find get give identify
    list look_for measure name pick quote read search show sum summarise summarize tell work_out
    """
)
"""What is done to an input rather than to a result, when "it" could mean either."""

MAKING = words(
    "write make create draft prepare produce generate give show get compile build provide put_together compose develop "
    "deliver design publish present"
)
"""What a text is made by."""

TRAILING = words(
    "save store name call label title caption format round keep limit ensure make_sure include cite use put mention "
    "note highlight show_your return print display output"
)
"""What says how a request is to be done rather than making another one; only when it points back or names no object."""

NOMINAL = {
    "summarise": "the summary of",
    "summarize": "the summary of",
    "sum_up": "the summary of",
    "count": "the number of",
    "tally": "the number of",
    "analyse": "the analysis of",
    "analyze": "the analysis of",
    "translate": "the translation of",
    "compare": "the comparison of",
    "contrast": "the contrast of",
    "describe": "the description of",
    "explain": "the explanation of",
    "plot": "the chart of",
    "chart": "the chart of",
    "graph": "the chart of",
    "visualise": "the chart of",
    "visualize": "the chart of",
    "rank": "the ranking of",
    "sort": "the sorted list of",
    "list": "the list of",
    "average": "the average of",
    "estimate": "the estimate of",
    "forecast": "the forecast of",
    "predict": "the prediction of",
    "classify": "the classification of",
    "outline": "the outline of",
    "review": "the review of",
    "evaluate": "the evaluation of",
    "assess": "the assessment of",
    "investigate": "the findings on",
    "research": "the findings on",
    "explore": "the findings on",
    "study": "the findings on",
    "solve": "the solution of",
    "simulate": "the simulation of",
    "search": "what was found in",
}
"""What a verb's result is called."""

TRANSPARENT = words(
    """
    build calculate choose collect compile compose compute construct create design detect determine develop devise
    display download draft draw extract fetch find gather generate get give identify implement list load locate
    look_up make measure name obtain open pick prepare print produce propose provide read recommend retrieve return
    select show suggest tell work_out write
    """
)
"""Verbs whose result is called like their object."""

TABULAR = words(
    """
    average best bottom categories category column columns correlation customer customers daily highest largest lowest
    maximum mean median minimum month monthly months order orders outliers per price prices product products profit
    quarter quarterly quarters records region regions revenue revenues row rows sales smallest top total totals trend
    turnover units week weekday weekly worst year yearly years
    """
)
PROSE = words(
    """
    character characters keyphrases keywords line lines paragraph paragraphs phrase phrases readability sentence
    sentences sentiment summarise summarize summary text theme themes tone topic topics word words
    """
)
TABLE_FILE = re.compile(r"\.(?:csv|tsv|xlsx?|parquet|ods|jsonl?|db|sqlite)\W?$", re.IGNORECASE)
