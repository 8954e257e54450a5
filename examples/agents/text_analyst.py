"""Read plain texts and count what they are made of, those of earlier tasks, too; a request is a whole form (`_READ`, `_COUNT`)."""

import re
import unicodedata

from ioa import Agent, DeclinedError, InputFile, InvalidInputError, TaskContext
from ioa.files import at_hand, came, format_of, missing, named_in, of_results, read_and_tell, with_suffix
from request import account_for, of_length, words_in

agent = Agent(
    "text-analyst", description="Reads text files, shows and measures them: counts of words, paragraphs, lines and characters.",
    skills=["read a text file", "word count and text statistics"], examples=[
        "count the words in notes.txt", "count the words in it", "how many lines has the file", "read minutes.txt",
        "how many words and paragraphs does the text have", "show me the text", "number of words in the text",
        "tell me how many words letter.txt has",
    ], tags=["text", "words"], declines=True, may_team_up=False,
)  # fmt: skip
_SUFFIXES, _SHOWN_CHARS = (".txt", ".md", ".markdown", ".rst", ".log", ".text"), 3_000
_MOST_BYTES = 10_000_000  # a text may take ten times its size of memory, and everybody else's tasks wait meanwhile
_HINT = (
    "Texts are read ('read FILE') and counted ('how many words in FILE': words, paragraphs, lines, characters), each in a sentence "
    "of its own that names its text. All else, such as a search or a summary, is for a language model."
)
_KIND, _AND = re.compile("words?|paragraphs?|lines?|characters?"), "(?:,? and|,)(?: also)?"
_NOUN, _HOW_MANY = "(?:(?:the|this|that|text|all) ){0,3}(?:texts?|files?)", "(?:count|how many|(?:the )?number of)"
_FILES = f"(?:{_NOUN} )?FILE(?:{_AND} (?:(?:in|of) )?(?:{_NOUN} )?FILE)*"
_TEXT = f"(?:{_FILES}|{_NOUN}|it|them|this|that|the result)"
_PLACE = f"(?:(?:is|are|there) )*(?:in|of|from|on|for) {_TEXT}|(?:is|are) there"
_OF_TEXT = f"(?:{_PLACE}|(?:does|do|has|have) {_TEXT}(?: have| contain)?|{_TEXT} (?:has|have|contains?))"
_KINDS = f"(?:{_HOW_MANY} )?(?:(?:the|all) )?(?:{_KIND.pattern})"
_COUNTED = f"{_HOW_MANY} {_KINDS}(?:{_AND} {_KINDS})*|(?:the )?(?:{_KIND.pattern}) count(?: {_TEXT})?"
_BEGIN = f"(?:in {_FILES},? )?(?:(?:please|can you|could you|tell me|show me|give me|i need|i want to know|what(?:'s| is| are)) )*"
_SHOWN = f"(?:read|open|show|print)(?: me)?(?: (?:(?:the )?(?:contents?|text) (?:of|in) )?{_TEXT})?|what(?:'s| is) in {_TEXT}"
_READ, _COUNT = re.compile(f"{_BEGIN}(?:{_SHOWN})"), re.compile(f"{_BEGIN}(?:{_COUNTED})(?: {_OF_TEXT})?")
_KNOWN = {word.removesuffix(end) for word in re.findall("[a-z]+", f"{_READ.pattern} {_COUNT.pattern}") for end in ("", "s")}
_UNSPACED = ("CJK UNIFIED", "HIRAGANA LETTER", "KATAKANA LETTER", "THAI", "LAO", "KHMER", "MYANMAR")


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Answer for every text the task is about."""
    there = at_hand(ctx)
    if said := missing(of_length(task, hint=_HINT), _SUFFIXES, [file.name for file in there]):
        raise InvalidInputError(said, hint=came(ctx))
    asked, named = _plain(task), named_in(task, there)
    for name in sorted((_plain(file.name) for file in named), key=len, reverse=True):
        asked = asked.replace(name, "FILE")
    asked = re.sub(r"([\"'`]?)(?<![^ \"'`])(?:[^ \"'`]*/)?FILE\1", "FILE", asked)  # without its folders, and quotes around it
    if not (_READ.fullmatch(asked) or _COUNT.fullmatch(asked)):
        account_for(asked, _KNOWN, _HINT)
        raise InvalidInputError(f"{task!r} is not read as one request.", hint=_HINT)
    return "\n\n".join(_answer(file, _KIND.findall(asked), ctx) for file in named or _meant(asked, ctx))


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split()).rstrip(" .?!")


def _meant(asked: str, ctx: TaskContext) -> list[InputFile]:
    words, texts = {*words_in(asked)}, with_suffix(ctx.inputs, _SUFFIXES)
    is_said = "files" in words or len(ctx.inputs) == max(1, len(texts))
    refers = ctx.results and words & {"it", "that", "this", "them", "result"}
    if files := of_results(ctx, _SUFFIXES) or ([*ctx.inputs] if is_said and not refers and "result" not in words else []):
        return files
    said = "It is not said which text file is meant, or none came, and only files are read here."
    raise (InvalidInputError if texts else DeclinedError)(said, hint=f"Name it. {came(ctx)} {_HINT}")


def _answer(file: InputFile, kinds: list[str], ctx: TaskContext) -> str:
    if file.path.stat().st_size > _MOST_BYTES:
        raise InvalidInputError(f"{file.name} has more than {_MOST_BYTES // 10**6} MB.", hint="Send it in parts.")
    if said := format_of(file, _SUFFIXES):
        raise InvalidInputError(f"{file.name} is {said}. Plain texts are read here.", hint="Save it as one.")
    text, assumed = read_and_tell(file.path)
    name, shown = f"{file.name} (read as {assumed})" if assumed else file.name, f"{file.name.removesuffix('.txt')}.txt"
    if kinds:
        counts = [_count(text, kind.removesuffix("s"), file) for kind in kinds]
        return f"{name}: {counts[0]}" if len(counts) == 1 else "\n- ".join([f"{name}:", *counts])
    ctx.artifact(shown, text, "text/plain")
    more = f" … and {len(text) - _SHOWN_CHARS} more characters in {shown}" if len(text) > _SHOWN_CHARS else ""
    return f"{name}: {text[:_SHOWN_CHARS].strip()}{more}"


def _count(text: str, kind: str, file: InputFile) -> str:
    """Words are counted as `wc -w` does, except that one holds a letter or a digit, and lines as editors do."""
    if kind == "character":
        twos = file.path.read_bytes().replace(b"\0", b"").count(b"\r\n")
        return f"characters: {len(text)}" + f" (ends of lines are one each, or {len(text) + twos} if two)" * bool(twos)
    if kind == "word":
        if letter := next((char for char in {*text} if unicodedata.name(char, "").startswith(_UNSPACED)), ""):
            raise InvalidInputError(f"No rule tells the words of a text apart that has letters such as {letter!r}, without blanks.")
        words, signs, example = 0, 0, ""
        for found in re.finditer(r"\S+", text):  # a list of them would take twenty times the text
            is_sign = not re.search(r"[^\W_]", found[0])
            words, signs, example = words + 1, signs + is_sign, example or found[0] * is_sign
        left_out = f" (left out: {signs} without a letter or digit, such as {example!r})" if signs else ""
        return f"words: {words - signs}{left_out}"
    if kind == "line":
        return "lines: " + str(text.removesuffix("\n").count("\n") + 1)
    blocks = 1 + sum(1 for _ in re.finditer(r"\n\s*\n", text.strip()))
    return f"paragraphs (what stands between blank lines, headings and lists, too): {blocks}"
