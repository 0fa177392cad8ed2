<?php
// WordPress as its setup page would leave it, with the database that the environment names.
define('DB_NAME', getenv('APP_SCHEMA'));
define('DB_USER', getenv('APP_USER'));
define('DB_PASSWORD', getenv('APP_PASSWORD'));
define('DB_HOST', getenv('APP_HOST') . ':' . getenv('APP_PORT'));
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');

foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $name) {
    define($name . '_KEY', "a key of $name");
    define($name . '_SALT', "a salt of $name");
}

// Nothing here reaches a network, and pages are fetched often enough without its own timetable.
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('WP_AUTO_UPDATE_CORE', false);

$table_prefix = 'wp_';
if (!defined('ABSPATH')) {
    define('ABSPATH', __DIR__ . '/');
}
require_once ABSPATH . 'wp-settings.php';
