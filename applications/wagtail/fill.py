"""Posts that link to each other, with tags, categories and comments."""

import datetime
import os
import random

import django

django.setup()

from blog.models import BlogCategory, BlogIndexPage, BlogPage, BlogPageRelatedPage, Comment
from home.models import HomePage
from wagtail.models import Site

chance = random.Random(int(os.environ["APP_SEED"]))
WORDS = (
    "harbour winter bread letter garden river morning copper engine valley market "
    "story lantern orchard paper signal thunder village window yellow anchor bridge candle desert"
).split()
FIRST_DAY = datetime.date(2025, 12, 1)


def words(count):
    return " ".join(chance.choices(WORDS, k=count))


def body(posts):
    paragraphs = []
    for _ in range(chance.randint(2, 6)):
        text = words(chance.randint(30, 80)).capitalize()
        if posts:
            text += f' <a linktype="page" id="{chance.choice(posts).pk}">{words(2)}</a>.'
        paragraphs.append(f"<p>{text}</p>")
    return "<h2>" + words(3).capitalize() + "</h2>" + "".join(paragraphs)


def publish(parent, page):
    parent.add_child(instance=page)
    page.save_revision().publish()
    return page


Site.objects.update(hostname=os.environ["APP_SITE"], site_name="A crawled site")
home = HomePage.objects.get()
categories = [BlogCategory.objects.create(name=name.capitalize(), slug=name) for name in WORDS[:8]]
index = publish(home, BlogIndexPage(title="Blog", intro=words(12), show_in_menus=True))
posts = []
for number in range(60):
    post = BlogPage(
        title=words(chance.randint(2, 5)).title(),
        slug=f"post-{number}",
        date=FIRST_DAY + datetime.timedelta(days=3 * number),
        intro=words(12).capitalize(),
        body=body(posts),
    )
    post.tags.add(*chance.sample(WORDS, 3))
    post.categories = chance.sample(categories, 2)
    for related in chance.sample(posts, min(3, len(posts))):
        post.related_pages.add(BlogPageRelatedPage(related_page=related))
    posts.append(publish(index, post))
for _ in range(4):
    publish(home, BlogIndexPage(title=words(2).title(), intro=words(30), show_in_menus=True))
Comment.objects.bulk_create(
    Comment(page=chance.choice(posts), name=words(1).capitalize(), text=words(20).capitalize())
    for _ in range(200)
)
