<?php
// A site of some age: posts in categories and with tags, pages, and comments.
$_SERVER['HTTP_HOST'] = getenv('APP_SITE');
$_SERVER['REQUEST_METHOD'] = 'GET';
define('WP_INSTALLING', true);
require getenv('APP_INSTALLED') . '/wordpress/wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';

mt_srand((int) getenv('APP_SEED'));
$words = explode(' ', 'harbour winter bread letter garden river morning copper engine valley market '
    . 'story lantern orchard paper signal thunder village window yellow anchor bridge candle desert');
function words(int $count): string
{
    global $words;
    $chosen = [];
    for ($i = 0; $i < $count; $i++) {
        $chosen[] = $words[mt_rand(0, count($words) - 1)];
    }
    return implode(' ', $chosen);
}
function text(int $paragraphs): string
{
    $all = [];
    for ($i = 0; $i < $paragraphs; $i++) {
        $all[] = '<!-- wp:paragraph --><p>' . ucfirst(words(mt_rand(30, 80))) . '.</p><!-- /wp:paragraph -->';
    }
    return implode("\n", $all);
}

wp_install('A crawled site', 'admin', 'admin@site.test', true, '', 'admin-password');
wp_cache_flush();
update_option('permalink_structure', '/%year%/%monthnum%/%postname%/');
update_option('comment_moderation', 0);
update_option('comment_previously_approved', 0);
update_option('posts_per_page', 10);
switch_theme('twentytwentythree');

$users = [1];
for ($i = 1; $i <= 4; $i++) {
    $users[] = wp_insert_user(['user_login' => "author$i", 'user_pass' => wp_generate_password(),
        'display_name' => ucwords(words(2)), 'user_email' => "author$i@site.test", 'role' => 'author']);
}
$categories = [];
foreach (array_slice($words, 0, 8) as $name) {
    $categories[] = wp_create_category(ucfirst($name));
}
$now = strtotime('2026-06-01');
$posts = [];
for ($i = 0; $i < 60; $i++) {
    $date = gmdate('Y-m-d H:i:s', $now - $i * 86400 * 3 - mt_rand(0, 80000));
    $posts[] = wp_insert_post(['post_title' => ucwords(words(mt_rand(2, 5))), 'post_content' => text(mt_rand(2, 6)),
        'post_status' => 'publish', 'post_author' => $users[mt_rand(0, 4)], 'post_date' => $date,
        'post_date_gmt' => $date, 'tags_input' => explode(' ', words(3)),
        'post_category' => [$categories[mt_rand(0, 7)], $categories[mt_rand(0, 7)]]]);
}
for ($i = 0; $i < 8; $i++) {
    wp_insert_post(['post_type' => 'page', 'post_title' => ucwords(words(2)), 'post_content' => text(3),
        'post_status' => 'publish', 'post_author' => 1]);
}
for ($i = 0; $i < 200; $i++) {
    wp_insert_comment(['comment_post_ID' => $posts[mt_rand(0, 59)], 'comment_author' => ucfirst(words(1)),
        'comment_author_email' => words(1) . '@reader.test', 'comment_content' => ucfirst(words(20)),
        'comment_date' => gmdate('Y-m-d H:i:s', $now + $i * 60), 'comment_approved' => 1]);
}
global $wp_rewrite;
$wp_rewrite->init();
$wp_rewrite->flush_rules();
