from django import forms
from django.core.paginator import Paginator
from django.db import models
from django.shortcuts import redirect
from modelcluster.contrib.taggit import ClusterTaggableManager
from modelcluster.fields import ParentalKey, ParentalManyToManyField
from taggit.models import TaggedItemBase
from wagtail.admin.panels import FieldPanel, InlinePanel, PageChooserPanel
from wagtail.fields import RichTextField
from wagtail.models import Orderable, Page
from wagtail.search import index
from wagtail.snippets.models import register_snippet


@register_snippet
class BlogCategory(models.Model):
    name = models.CharField(max_length=255)
    slug = models.SlugField(unique=True)

    panels = [FieldPanel("name"), FieldPanel("slug")]

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "blog categories"

    def __str__(self):
        return self.name


class BlogIndexPage(Page):
    intro = RichTextField(blank=True)

    content_panels = Page.content_panels + [FieldPanel("intro")]
    subpage_types = ["BlogPage"]

    def get_posts(self):
        return BlogPage.objects.child_of(self).live().order_by("-date")

    def get_context(self, request):
        context = super().get_context(request)
        posts = self.get_posts()
        tag = request.GET.get("tag")
        if tag:
            posts = posts.filter(tags__slug=tag)
        category = request.GET.get("category")
        if category:
            posts = posts.filter(categories__slug=category)
        context["posts"] = Paginator(posts, 10).get_page(request.GET.get("page"))
        context["tag"] = tag
        context["category"] = category
        return context


class BlogPageTag(TaggedItemBase):
    content_object = ParentalKey("BlogPage", related_name="tagged_items", on_delete=models.CASCADE)


class BlogPage(Page):
    date = models.DateField("post date")
    intro = models.CharField(max_length=250)
    body = RichTextField(blank=True)
    tags = ClusterTaggableManager(through=BlogPageTag, blank=True)
    categories = ParentalManyToManyField("BlogCategory", blank=True)

    search_fields = Page.search_fields + [index.SearchField("intro"), index.SearchField("body")]
    content_panels = Page.content_panels + [
        FieldPanel("date"),
        FieldPanel("tags"),
        FieldPanel("categories", widget=forms.CheckboxSelectMultiple),
        FieldPanel("intro"),
        FieldPanel("body"),
        InlinePanel("related_pages", label="Related pages"),
    ]
    parent_page_types = ["BlogIndexPage"]
    subpage_types = []

    def get_context(self, request):
        context = super().get_context(request)
        context["form"] = CommentForm()
        return context

    def serve(self, request):
        if request.method != "POST":
            return super().serve(request)
        form = CommentForm(request.POST, instance=Comment(page=self))
        if not form.is_valid():
            return self.render(request, context_overrides={"form": form})
        form.save()
        return redirect(self.get_url(request))


class BlogPageRelatedPage(Orderable):
    page = ParentalKey(BlogPage, related_name="related_pages", on_delete=models.CASCADE)
    related_page = models.ForeignKey("wagtailcore.Page", related_name="+", on_delete=models.CASCADE)

    panels = [PageChooserPanel("related_page")]


class Comment(models.Model):
    page = models.ForeignKey(BlogPage, related_name="comments", on_delete=models.CASCADE)
    name = models.CharField(max_length=80)
    text = models.TextField()
    posted_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["posted_at", "id"]


class CommentForm(forms.ModelForm):
    class Meta:
        model = Comment
        fields = ["name", "text"]
