-- param: sent boolean = false

-- name: post :one
select id, slug, title, summary, body, author, published_at from post where slug = :slug and is_public;

-- name: tags :many
select t.name from post p join post_tag x on x.post_id = p.id join tag t on t.id = x.tag_id
where p.slug = :slug order by t.name;

-- name: comments :many
select c.id, c.who, c.body, c.at from post p join comment c on c.post_id = p.id
where p.slug = :slug and c.is_allowed order by c.at, c.id limit 500;
