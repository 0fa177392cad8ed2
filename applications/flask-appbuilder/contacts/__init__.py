"""Contacts in groups: the application of Flask-AppBuilder's quick how-to."""

from flask import Flask
from flask_appbuilder import AppBuilder
from flask_appbuilder.models.sqla.base import SQLA

db = SQLA()
appbuilder = AppBuilder()


def create_app():
    app = Flask(__name__)
    app.config.from_object("contacts.config")
    with app.app_context():
        db.init_app(app)
        appbuilder.init_app(app, db.session)
        from . import views

        views.add()
    return app
