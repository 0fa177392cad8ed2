"""What a site has of its own; the database is the one that the environment names."""

import os

from .base import INSTALLED_APPS

INSTALLED_APPS = ["blog", *INSTALLED_APPS]
SECRET_KEY = "0123456789abcdef" * 4
ALLOWED_HOSTS = [os.environ.get("APP_SITE")]
WAGTAIL_SITE_NAME = "A crawled site"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.mysql",
        "NAME": os.environ.get("APP_SCHEMA"),
        "USER": os.environ.get("APP_USER"),
        "PASSWORD": os.environ.get("APP_PASSWORD"),
        "HOST": os.environ.get("APP_HOST"),
        "PORT": os.environ.get("APP_PORT"),
    }
}
# Without this, nobody is told of an error.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"]},
}
