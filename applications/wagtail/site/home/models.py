from wagtail.models import Page

from blog.models import BlogPage


class HomePage(Page):
    def get_context(self, request):
        context = super().get_context(request)
        context["latest"] = BlogPage.objects.live().descendant_of(self).order_by("-date")[:5]
        return context
