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
    add adjust advise aggregate analyse analyze answer append apply arrange ask assemble assess assist average balance bring browse
    build buy calculate categorise categorize choose cite clarify classify clean collect combine compare compile complete compose
    compress compute conclude conduct condense construct convert copy correct correlate count crawl create decide decode
    deduplicate deduce define deliver demonstrate deploy depict derive describe detect determine develop devise diagnose double halve triple
    discuss divide download draft draw edit elaborate email embed encode encrypt enumerate estimate evaluate examine execute
    explain explore export extract fetch fill find fix flag format formulate gather generate get give go_through grab hash
    highlight identify illustrate implement infer inspect integrate interpret introduce investigate join justify lay_out learn
    list load locate look_at look_for look_into look_up make measure merge minimise minimize modify multiply normalise normalize
    obtain open pull_out optimise optimize organise organize outline paraphrase parse perform pick pinpoint plot point_out post predict
    prepare present print prioritise prioritize produce proofread propose prove provide publish pull put put_together quantify
    raise rank rate read recommend refactor remove render rephrase replace research resize resolve retrieve return reverse rewrite run save
    scan scrape search select send separate show simplify simulate sketch solve sort spell split spot store strip subtract
    suggest sum_up summarise summarize synthesise synthesize take tally teach tell tidy total_up trace train transcribe
    transform translate turn uncover update use validate verify visit visualise visualize work_out write
    """
)
"""Verbs that hardly ever are nouns where a request begins."""

NOUN_VERBS = words(
    """
    book call challenge change chart check code comment contrast critique design document escape export filter forecast graph group import
    label map mark model name note order plan process profile project quote rate record report review round schedule score script
    sample state study sum survey table tag test total track trend view
    """
)
"""Verbs that are as often nouns: verbs only if an object follows."""

QUESTION_WORDS = words("what which who whose whom when where why how")
AUXILIARIES = words("is are was were does do did can could should would will has have had")

REPORTS = words(
    """
    report briefing document article paper memo summary write-up writeup overview page email letter newsletter presentation
    dashboard conclusion recap digest essay brief story post handout
    """
)
"""Things made of whatever there is: without an object of their own they take everything before them."""

CHARTS = words(
    """
    chart graph plot histogram diagram barchart scatterplot heatmap boxplot infographic figure visualisation visualization drawing
    picture image map sparkline
    """
)
PRODUCTS = REPORTS | CHARTS | words("table list ranking translation comparison forecast analysis explanation script poem quiz outline")
"""Things that are handed over: two of them in one sentence are two requests."""

PREPARING = words("load open read import take use look_at go_through parse inspect grab get consider")
"""What is only done to a file in order to do something else with it."""

FETCHING = words("fetch download get scrape crawl retrieve find search look_up look_for locate visit grab pull collect gather browse open read")
"""What yields the very thing a following pronoun means."""

EXAMINING = words(
    """
    count summarise summarize list extract measure analyse analyze find identify tell check compute calculate determine detect
    work_out give show read get describe look_for search pick quote name average sum
    """
)
"""What is done to an input rather than to a result, when "it" could mean either."""

MAKING = words("write make create draft prepare produce generate give show get compile build provide put_together compose develop deliver design publish present")
"""What a text is made by."""

TRAILING = words("save store name call label title caption format round keep limit ensure make_sure include cite use put mention note highlight show_your return print display output")
"""What says how a request is to be done rather than making another one; only when it points back or names no object."""

NOMINAL = {
    "summarise": "the summary of", "summarize": "the summary of", "sum_up": "the summary of",
    "count": "the number of", "tally": "the number of",
    "analyse": "the analysis of", "analyze": "the analysis of",
    "translate": "the translation of", "compare": "the comparison of", "contrast": "the contrast of",
    "describe": "the description of", "explain": "the explanation of",
    "plot": "the chart of", "chart": "the chart of", "graph": "the chart of", "visualise": "the chart of", "visualize": "the chart of",
    "rank": "the ranking of", "sort": "the sorted list of", "list": "the list of", "average": "the average of",
    "estimate": "the estimate of", "forecast": "the forecast of", "predict": "the prediction of", "classify": "the classification of",
    "outline": "the outline of", "review": "the review of", "evaluate": "the evaluation of", "assess": "the assessment of",
    "investigate": "the findings on", "research": "the findings on", "explore": "the findings on", "study": "the findings on",
    "solve": "the solution of", "simulate": "the simulation of", "search": "what was found in",
}  # fmt: skip
"""What a verb's result is called."""

TRANSPARENT = words(
    """
    compute calculate find identify determine extract get give show make create write draw generate build prepare produce provide
    draft fetch download retrieve read load open tell name pick select list collect gather compile compose work_out locate obtain
    develop design construct measure detect print display return look_up recommend suggest propose devise choose implement
    """
)
"""Verbs whose result is called like their object."""

TABULAR = words(
    """
    per column columns row rows region regions month months monthly year years yearly quarter quarters quarterly week weekly weekday daily customer customers
    product products category categories sales revenue revenues profit turnover units price prices order orders total totals average
    mean median maximum minimum highest lowest largest smallest best worst top bottom records outliers correlation trend
    """
)
PROSE = words(
    """
    word words sentence sentences paragraph paragraphs line lines character characters phrase phrases keyphrases keywords text
    topic topics theme themes summary summarise summarize tone sentiment readability
    """
)
TABLE_FILE = re.compile(r"\.(?:csv|tsv|xlsx?|parquet|ods|jsonl?|db|sqlite)\W?$", re.IGNORECASE)
