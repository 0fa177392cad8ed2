"""The configuration, with the database that the environment names."""

import os

from flask_appbuilder.const import AUTH_DB
from sqlalchemy import URL

SECRET_KEY = "0123456789abcdef" * 4
SQLALCHEMY_DATABASE_URI = URL.create(
    "mysql+pymysql",
    os.environ["APP_USER"],
    os.environ["APP_PASSWORD"],
    os.environ["APP_HOST"],
    int(os.environ["APP_PORT"]),
    os.environ["APP_SCHEMA"],
    {"charset": "utf8mb4"},
)
WTF_CSRF_ENABLED = True
AUTH_TYPE = AUTH_DB
APP_NAME = "Contacts"
