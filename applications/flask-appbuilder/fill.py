"""Users, and contacts in groups."""

import datetime
import os
import random

from contacts import appbuilder, create_app, db
from contacts.models import Contact, ContactGroup

chance = random.Random(int(os.environ["APP_SEED"]))
NAMES = "Anna Bela Carlos Dina Edgar Filipa Gil Helena Ivo Joana Karl Lena Mario Nora Oto Petra".split()
STREETS = "Harbour Garden River Market Orchard Bridge Lantern Valley".split()


def phone():
    return str(chance.randint(210_000_000, 969_999_999))


app = create_app()
with app.app_context():
    db.create_all()
    security = appbuilder.sm
    role = security.find_role("Admin")
    admin = security.add_user(
        "admin", "Ada", "Admin", "admin@site.test", role, "administrator-password"
    )
    groups = [ContactGroup(name=name) for name in ("Friends", "Family", "Work", "Club", "Shops")]
    db.session.add_all(groups)
    for number in range(300):
        contact = Contact(
            name=f"{chance.choice(NAMES)} {chance.choice(STREETS)} {number}",
            address=f"{chance.choice(STREETS)} street {chance.randint(1, 99)}",
            birthday=datetime.date(1950, 1, 1) + datetime.timedelta(days=chance.randint(0, 20_000)),
            personal_phone=phone(),
            personal_cellphone=phone(),
            contact_group=chance.choice(groups),
            # There is no request here whose user it could be.
            created_by=admin,
            changed_by=admin,
        )
        db.session.add(contact)
    db.session.commit()
