-- param: id integer
-- require: claims.role = 'author' else /login

-- name: comment :one
update comment set is_allowed = true where id = :id returning id as comment_id;

-- redirect: /desk
