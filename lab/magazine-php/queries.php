<?php
// The connection and the queries of the article page: those of examples/articles/pages/read.sql, in their order.

declare(strict_types=1);

// SQLSTATE invalid_sql_statement_name.
const UNKNOWN_STATEMENT = '26000';

const QUERIES = [
    'article' => 'select a.id, a.title, a.summary, a.published_at, a.words, a.version, a.license, a.repository, a.body_html
        from article a where a.id = $1',
    'authors' => 'select u.slug, u.name from article_author x join author u on u.id = x.author_id
        where x.article_id = $1 order by x.position',
    'topics' => 'select t.id, t.slug, t.name from article_topic x join topic t on t.id = x.topic_id
        where x.article_id = $1 order by x.position',
    'needs' => "select other_id as id, title, summary from related
        where article_id = $1 and kind = 'needs' order by position limit 12",
    'needed_by' => "select other_id as id, title, summary from related
        where article_id = $1 and kind = 'needed by' order by position limit 12",
    'near' => "select other_id as id, title, summary from related
        where article_id = $1 and kind = 'near' order by position limit 6",
    'comments' => 'select id, who, at, body, account_id is not null as signed from comment where article_id = $1 order by at desc, id desc limit 20',
    'discussion' => 'select count(*) as comments from comment where article_id = $1',
];

/** The connection of this PHP process, which outlives the request. */
function database(): PDO
{
    static $database = null;
    return $database ??= new PDO(getenv('DATABASE_DSN'), null, null, [
        PDO::ATTR_PERSISTENT => true,
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
        PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC,
    ]);
}

/**
 * All rows of one query for one article.
 *
 * PDO's own prepared statements end with the request, and cost three round trips each. These are prepared in SQL when a
 * connection is new, and stay with it: the server plans them once, and a query is one round trip.
 */
function rows(string $query, int $id): array
{
    try {
        return database()->query("execute $query($id)")->fetchAll();
    } catch (PDOException $error) {
        if ($error->getCode() !== UNKNOWN_STATEMENT) {
            throw $error;
        }
    }
    database()->exec("deallocate all");
    foreach (QUERIES as $name => $sql) {
        database()->exec("prepare $name(bigint) as $sql");
    }
    return database()->query("execute $query($id)")->fetchAll();
}

/** The article that is asked for; the answer is 400 where that is no number. */
function requested_id(): int
{
    $id = filter_input(INPUT_GET, 'id', FILTER_VALIDATE_INT);
    if (is_int($id)) {
        return $id;
    }
    http_response_code(400);
    exit("id is no number\n");
}

/** Ends the answer as 404. */
function not_found(): never
{
    http_response_code(404);
    exit("There is no such article.\n");
}
