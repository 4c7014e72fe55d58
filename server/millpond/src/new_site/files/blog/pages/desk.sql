-- require: claims.role = 'author' else /login
-- param: page integer = 1

-- name: waiting :many
select c.id, c.who, c.body, c.at, p.title from comment c join post p on p.id = c.post_id
where not c.is_allowed order by c.at, c.id limit 50;

-- name: total :one
select (count(*) + 29) / 30 as pages from post;

-- name: posts :many
select id, title, is_public, published_at from post order by published_at desc, id desc limit 30 offset (:page - 1) * 30;

-- name: tags :many
select id, name from tag order by lower(name), id;
