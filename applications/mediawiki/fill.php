<?php
// Articles that link to each other, in categories and with templates, edited a few times.
require '/usr/share/mediawiki/maintenance/Maintenance.php';

use MediaWiki\MediaWikiServices;
use MediaWiki\Revision\SlotRecord;

class Fill extends Maintenance
{
    private array $words;

    public function execute()
    {
        mt_srand((int) getenv('APP_SEED'));
        $this->words = explode(' ', 'harbour winter bread letter garden river morning copper engine valley market '
            . 'story lantern orchard paper signal thunder village window yellow anchor bridge candle desert');
        $titles = [];
        for ($i = 0; $i < 80; $i++) {
            $titles[] = ucfirst($this->words(2)) . " $i";
        }
        foreach (['Infobox', 'Note'] as $template) {
            $this->save("Template:$template", "'''{{{title|$template}}}''': {{{text|}}}");
        }
        foreach (array_slice($this->words, 0, 6) as $name) {
            $this->save('Category:' . ucfirst($name), $this->words(10));
        }
        foreach ($titles as $title) {
            $this->save($title, $this->article($title, $titles));
        }
        for ($i = 0; $i < 60; $i++) {
            $title = $titles[mt_rand(0, 79)];
            $this->save($title, $this->article($title, $titles));
        }
        $links = array_map(fn ($title) => "* [[$title]]", $titles);
        $this->save('Main Page', implode("\n", $links));
    }

    private function article(string $title, array $titles): string
    {
        $text = "{{Infobox|title=$title|text=" . $this->words(6) . "}}\n";
        for ($i = 0; $i < 4; $i++) {
            $text .= '== ' . ucfirst($this->words(2)) . " ==\n" . ucfirst($this->words(60));
            $text .= ' [[' . $titles[mt_rand(0, 79)] . ']] ' . $this->words(20) . ' [[' . $titles[mt_rand(0, 79)] . "]].\n\n";
        }
        return $text . '[[Category:' . ucfirst($this->words[mt_rand(0, 5)]) . ']]';
    }

    private function words(int $count): string
    {
        $chosen = [];
        for ($i = 0; $i < $count; $i++) {
            $chosen[] = $this->words[mt_rand(0, count($this->words) - 1)];
        }
        return implode(' ', $chosen);
    }

    private function save(string $title, string $text): void
    {
        $page = MediaWikiServices::getInstance()->getWikiPageFactory()->newFromTitle(Title::newFromText($title));
        $updater = $page->newPageUpdater(User::newSystemUser('Maintenance script', ['steal' => true]));
        $updater->setContent(SlotRecord::MAIN, new WikitextContent($text));
        $updater->saveRevision(CommentStoreComment::newUnsavedComment($this->words(3)));
    }
}
$maintClass = Fill::class;
require RUN_MAINTENANCE_IF_MAIN;
