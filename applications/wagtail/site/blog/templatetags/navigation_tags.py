from django import template
from wagtail.models import Site

from blog.models import BlogCategory, BlogIndexPage

register = template.Library()


@register.inclusion_tag("blog/top_menu.html", takes_context=True)
def top_menu(context, calling_page=None):
    root = Site.find_for_request(context["request"]).root_page
    pages = root.get_children().live().in_menu()
    for page in pages:
        page.active = bool(calling_page) and calling_page.url_path.startswith(page.url_path)
    return {"root": root, "pages": pages, "request": context["request"]}


@register.inclusion_tag("blog/footer_categories.html", takes_context=True)
def footer_categories(context):
    return {
        "categories": BlogCategory.objects.all(),
        "blog": BlogIndexPage.objects.live().first(),
        "request": context["request"],
    }
