<?php
// The article page, made from the database for every request.

declare(strict_types=1);

require __DIR__ . '/queries.php';
require __DIR__ . '/page.php';

$id = requested_id();
$article = rows('article', $id)[0] ?? not_found();
page([
    'article' => $article,
    'authors' => rows('authors', $id),
    'topics' => rows('topics', $id),
    'needs' => rows('needs', $id),
    'needed_by' => rows('needed_by', $id),
    'near' => rows('near', $id),
    'comments' => rows('comments', $id),
    'discussion' => rows('discussion', $id)[0],
]);
