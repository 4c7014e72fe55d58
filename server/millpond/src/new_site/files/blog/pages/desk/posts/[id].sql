-- param: id integer
-- require: claims.role = 'author' else /login

-- name: post :one
select id, title, slug, summary, body, is_public from post where id = :id;

-- name: tags :many
select id, name from tag order by lower(name), id;

-- name: has :many
select tag_id from post_tag where post_id = :id order by tag_id;

-- name: comments :many
select id, who, body, at from comment where post_id = :id and is_allowed order by at, id limit 500;
