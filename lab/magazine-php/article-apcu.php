<?php
// The article page, made for every request from objects that APCu keeps for one second. Whoever finds an object gone asks the
// database for it, as such sites do: nobody waits for another, and a page may join objects of different ages.

declare(strict_types=1);

require __DIR__ . '/queries.php';
require __DIR__ . '/page.php';

const TIME_TO_LIVE_S = 1;

/** The rows of a query, at most a second old. */
function cached(string $query, int $id): array
{
    $key = "$query:$id";
    $rows = apcu_fetch($key, $found);
    if (!$found) {
        $rows = rows($query, $id);
        apcu_store($key, $rows, TIME_TO_LIVE_S);
    }
    return $rows;
}

$id = requested_id();
$article = cached('article', $id)[0] ?? not_found();
page([
    'article' => $article,
    'authors' => cached('authors', $id),
    'topics' => cached('topics', $id),
    'needs' => cached('needs', $id),
    'needed_by' => cached('needed_by', $id),
    'near' => cached('near', $id),
    'comments' => cached('comments', $id),
    'discussion' => cached('discussion', $id)[0],
]);
