<?php
// MediaWiki as its installer leaves it, with the database that the environment names.
if (!defined('MEDIAWIKI')) {
    exit;
}
$wgSitename = 'A crawled wiki';
$wgMetaNamespace = 'Project';
$wgServer = 'http://' . getenv('APP_SITE');
$wgScriptPath = '';
$wgResourceBasePath = '';
$wgDBtype = 'mysql';
$wgDBserver = getenv('APP_HOST') . ':' . getenv('APP_PORT');
$wgDBname = getenv('APP_SCHEMA');
$wgDBuser = getenv('APP_USER');
$wgDBpassword = getenv('APP_PASSWORD');
$wgDBTableOptions = 'ENGINE=InnoDB, DEFAULT CHARSET=binary';
$wgMainCacheType = CACHE_NONE;
$wgLanguageCode = 'en';
$wgSecretKey = str_repeat('0123456789abcdef', 4);
$wgUpgradeKey = '0123456789abcdef';
$wgEnableUploads = false;
$wgCacheDirectory = getenv('APP_SCRATCH');
$wgTmpDirectory = getenv('APP_SCRATCH');
// Everybody may edit here, and nobody is slowed down.
$wgRateLimits = [];
wfLoadSkin('Vector');
wfLoadExtension('ParserFunctions');
