"""Facts: what does it know of me?"""

from starlette.responses import Response

from backsight.core.errors import Invalid
from backsight.surfaces.web.page import PageRequest


def show(page: PageRequest) -> Response:
    archived = page.text("archived") == "yes"
    answer = page.memory.list_facts(archived=archived, topic=page.text("topic"), **page.when)
    every = answer if page.text("topic") is None else page.memory.list_facts(archived=archived, **page.when)
    topics = sorted({each.topic for each in every.facts if each.topic})
    return page.render("facts.html", title="Facts", answer=answer, archived=archived, topics=topics)


def ask_to_erase(page: PageRequest) -> Response:
    """The second question before a fact is erased for good."""
    fact_id = page.query["id"]
    for archived in (False, True):
        for each in page.memory.list_facts(archived=archived).facts:
            if each.id == fact_id:
                return page.render("erase_fact.html", title="Facts", fact=each)
    raise Invalid("is no fact; choose one on the page Facts", field="fact_id")
