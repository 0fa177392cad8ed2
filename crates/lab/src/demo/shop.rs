//! The demo's data and statements: a small shop.
//!
//! The pages of a shop ask for the same things again and again, and some far more often than
//! others. Now and then something is sold. `stock.sold` only grows, one sale at a time, so the
//! oracle can judge each value that is read.

use remora_testkit::load::{Random, Zipf};
use remora_testkit::servers::Server;

/// How many products there are; as many rows has the stock.
pub(super) const PRODUCTS: usize = 10_000;
const CATEGORIES: usize = 50;
const CUSTOMERS: usize = 20_000;
const ORDERS: usize = 20_000;
const ITEMS: usize = 40_000;
/// All rows together, for the person who watches.
pub(super) const ROWS: usize = CATEGORIES + 2 * PRODUCTS + CUSTOMERS + ORDERS + ITEMS;

/// How unequal the products' shares are.
const EXPONENT: f64 = 1.0;

/// Creates and fills the tables.
pub(super) fn load(server: &Server) -> anyhow::Result<()> {
    server.execute([
        "CREATE TABLE category (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL)".to_owned(),
        "CREATE TABLE product (id INT PRIMARY KEY, category_id INT NOT NULL, name VARCHAR(60) NOT NULL, \
         price_cents INT NOT NULL, description VARCHAR(200) NOT NULL, KEY (category_id, price_cents))"
            .to_owned(),
        "CREATE TABLE stock (product_id INT PRIMARY KEY, sold BIGINT NOT NULL)".to_owned(),
        "CREATE TABLE customer (id INT PRIMARY KEY, name VARCHAR(60) NOT NULL, city VARCHAR(40) NOT NULL)"
            .to_owned(),
        "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, customer_id INT NOT NULL, \
         placed DATETIME NOT NULL, total_cents INT NOT NULL, KEY (customer_id, placed))"
            .to_owned(),
        "CREATE TABLE order_item (order_id INT NOT NULL, product_id INT NOT NULL, quantity INT NOT NULL, \
         PRIMARY KEY (order_id, product_id), KEY (product_id, quantity))"
            .to_owned(),
        format!("INSERT INTO category SELECT seq, CONCAT('Category ', seq) FROM seq_1_to_{CATEGORIES}"),
        format!(
            "INSERT INTO product SELECT seq, 1 + seq % {CATEGORIES}, CONCAT('Product ', seq), \
             100 + seq * 7919 % 50000, REPEAT(CONCAT('All about product ', seq, '. '), 5) \
             FROM seq_1_to_{PRODUCTS}"
        ),
        format!("INSERT INTO stock SELECT seq, 0 FROM seq_1_to_{PRODUCTS}"),
        format!(
            "INSERT INTO customer SELECT seq, CONCAT('Customer ', seq), CONCAT('City ', seq % 500) \
             FROM seq_1_to_{CUSTOMERS}"
        ),
        format!(
            "INSERT INTO orders SELECT seq, 1 + seq * 31 % {CUSTOMERS}, \
             '2026-01-01' + INTERVAL seq MINUTE, 500 + seq * 13 % 20000 FROM seq_1_to_{ORDERS}"
        ),
        format!(
            "INSERT INTO order_item SELECT 1 + seq % {ORDERS}, 1 + (seq * 17 + seq DIV {ORDERS} * 3) % {PRODUCTS}, 1 + seq % 3 \
             FROM seq_1_to_{ITEMS}"
        ),
        "ANALYZE TABLE category, product, stock, customer, orders, order_item".to_owned(),
    ])
}

/// One statement of a page.
#[derive(Debug)]
pub(super) enum Read {
    /// Its answer is not looked at.
    Page(String),
    /// How many of a product have been sold, by its number from 0: the oracle judges the answer.
    Sold(usize, String),
}

impl Read {
    /// The statement.
    pub(super) fn text(&self) -> &str {
        match self {
            Read::Page(text) | Read::Sold(_, text) => text,
        }
    }
}

/// Chooses statements as visitors do.
#[derive(Debug)]
pub(super) struct Visitors {
    products: Zipf,
    customers: Zipf,
    categories: Zipf,
}

impl Visitors {
    /// The same for all arms.
    pub(super) fn new() -> Visitors {
        Visitors {
            products: Zipf::new(PRODUCTS, EXPONENT),
            customers: Zipf::new(CUSTOMERS, EXPONENT),
            categories: Zipf::new(CATEGORIES, EXPONENT),
        }
    }

    /// The next statement of a page.
    pub(super) fn read(&self, random: &mut Random) -> Read {
        let product = self.products.next(random);
        let category = 1 + self.categories.next(random);
        match random.below(100) {
            0..45 => Read::Page(format!(
                "SELECT name, price_cents, description FROM product WHERE id = {}",
                product + 1
            )),
            45..60 => Read::Page(format!(
                "SELECT p.id, p.name, p.price_cents, c.name FROM product p \
                 JOIN category c ON c.id = p.category_id WHERE c.id = {category} \
                 ORDER BY p.price_cents LIMIT 20"
            )),
            60..70 => Read::Page(format!(
                "SELECT p.id, p.name, SUM(i.quantity) AS pieces FROM order_item i \
                 JOIN product p ON p.id = i.product_id WHERE p.category_id = {category} \
                 GROUP BY p.id, p.name ORDER BY pieces DESC, p.id LIMIT 10"
            )),
            70..80 => Read::Page(format!(
                "SELECT id, placed, total_cents FROM orders WHERE customer_id = {} \
                 ORDER BY placed DESC LIMIT 10",
                1 + self.customers.next(random)
            )),
            80..85 => Read::Page(format!(
                "SELECT category_id, COUNT(*), AVG(price_cents) FROM product \
                 WHERE category_id = {category} GROUP BY category_id"
            )),
            _ => Read::Sold(
                product,
                format!("SELECT sold FROM stock WHERE product_id = {}", product + 1),
            ),
        }
    }

    /// The product that is sold next, from 0.
    pub(super) fn product_sold(&self, random: &mut Random) -> usize {
        self.products.next(random)
    }

    /// The statement that sets how many of a product have been sold.
    pub(super) fn sale(product: usize, sold: u64) -> String {
        format!(
            "UPDATE stock SET sold = {sold} WHERE product_id = {}",
            product + 1
        )
    }

    /// The statement that places an order.
    pub(super) fn order(&self, random: &mut Random) -> String {
        let (customer, cents) = (1 + self.customers.next(random), 500 + random.below(20_000));
        format!(
            "INSERT INTO orders (customer_id, placed, total_cents) VALUES ({customer}, NOW(), {cents})"
        )
    }
}

impl Default for Visitors {
    fn default() -> Visitors {
        Visitors::new()
    }
}
