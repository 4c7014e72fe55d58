-- live
-- param: id integer

-- name: article :one
select a.id, a.title, a.summary, a.published_at, a.words, a.version, a.license, a.repository, a.body_html
from article a where a.id = :id;

-- name: authors :many
select u.slug, u.name from article_author x join author u on u.id = x.author_id
where x.article_id = :id order by x.position;

-- name: topics :many
select t.id, t.slug, t.name from article_topic x join topic t on t.id = x.topic_id
where x.article_id = :id order by x.position;

-- name: needs :many
select other_id as id, title, summary from related
where article_id = :id and kind = 'needs' order by position limit 12;

-- name: needed_by :many
select other_id as id, title, summary from related
where article_id = :id and kind = 'needed by' order by position limit 12;

-- name: near :many
select other_id as id, title, summary from related
where article_id = :id and kind = 'near' order by position limit 6;

-- name: comments :many
select id, who, at, body, account_id is not null as signed from comment where article_id = :id order by at desc, id desc limit 20;

-- name: discussion :one
select count(*) as comments from comment where article_id = :id;
