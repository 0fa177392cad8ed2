from flask_appbuilder import GroupByChartView, ModelView
from flask_appbuilder.models.group import aggregate_count
from flask_appbuilder.models.sqla.interface import SQLAInterface

from . import appbuilder
from .models import Contact, ContactGroup


class ContactModelView(ModelView):
    datamodel = SQLAInterface(Contact)
    label_columns = {"contact_group": "Contacts Group"}
    list_columns = ["name", "personal_cellphone", "birthday", "contact_group"]
    base_order = ("name", "asc")
    show_fieldsets = [
        ("Summary", {"fields": ["name", "address", "contact_group"]}),
        (
            "Personal Info",
            {"fields": ["birthday", "personal_phone", "personal_cellphone"], "expanded": False},
        ),
        ("Audit", {"fields": ["created_by", "created_on", "changed_by", "changed_on"]}),
    ]
    add_columns = edit_columns = [
        "name",
        "address",
        "contact_group",
        "birthday",
        "personal_phone",
        "personal_cellphone",
    ]


class GroupModelView(ModelView):
    datamodel = SQLAInterface(ContactGroup)
    list_columns = ["name"]
    related_views = [ContactModelView]


class ContactChartView(GroupByChartView):
    datamodel = SQLAInterface(Contact)
    chart_title = "Grouped contacts"
    chart_type = "PieChart"
    definitions = [
        {"label": "Group", "group": "contact_group.name", "series": [(aggregate_count, "contact_group")]}
    ]


class ContactTimeChartView(GroupByChartView):
    datamodel = SQLAInterface(Contact)
    chart_title = "Grouped birth contacts"
    chart_type = "AreaChart"
    definitions = [
        {"label": "Month", "group": "month", "series": [(aggregate_count, "contact_group")]},
        {"label": "Year", "group": "year", "series": [(aggregate_count, "contact_group")]},
    ]


def add():
    contacts, charts = "Contacts", "Contacts charts"
    appbuilder.add_view(GroupModelView, "List Groups", icon="fa-folder-open-o", category=contacts)
    appbuilder.add_view(ContactModelView, "List Contacts", icon="fa-envelope", category=contacts)
    appbuilder.add_separator(contacts)
    appbuilder.add_view(ContactChartView, "Contacts Chart", icon="fa-dashboard", category=charts)
    appbuilder.add_view(ContactTimeChartView, "Contacts Birth Chart", category=charts)
