<?php
// The article page as HTML: examples/articles/templates/layout.html and pages/read.html, letter for letter.

declare(strict_types=1);

/** Text for HTML. */
function h(?string $text): string
{
    return htmlspecialchars($text ?? '', ENT_QUOTES | ENT_SUBSTITUTE, 'UTF-8');
}

/** `2026-03-03T…` is `3 March 2026`; anything else stays as it is. */
function day(string $text): string
{
    static $months = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October',
        'November', 'December'];
    $month = $months[(int) substr($text, 5, 2) - 1] ?? null;
    return $month === null ? $text : (int) substr($text, 8, 2) . " $month " . substr($text, 0, 4);
}

/** `12345` is `12 345`, with thin no-break spaces. */
function number(int $value): string
{
    return number_format($value, 0, '', "\u{202f}");
}

/** Sends the page of what `queries.php` names. */
function page(array $page): void
{
    ['article' => $a, 'authors' => $authors, 'topics' => $topics, 'comments' => $comments] = $page;
    $said = $page['discussion']['comments'];
    $related = ['Built on' => $page['needs'], 'Needed by' => $page['needed_by'], 'Near this' => $page['near']];
    header('Content-Type: text/html; charset=utf-8');
    require __DIR__ . '/read.phtml';
}
