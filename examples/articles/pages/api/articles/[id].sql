-- param: id integer

-- name: article :one
select id, slug, title, summary, published_at, words, version, license, repository, body_text
from article where id = :id;

-- name: authors :many
select u.slug, u.name from article_author x join author u on u.id = x.author_id
where x.article_id = :id order by x.position;

-- name: topics :many
select t.slug, t.name from article_topic x join topic t on t.id = x.topic_id
where x.article_id = :id order by x.position;

-- name: related :many
select other_id as id, kind, title from related where article_id = :id order by kind, position;

-- name: discussion :one
select count(*) as comments from comment where article_id = :id;
