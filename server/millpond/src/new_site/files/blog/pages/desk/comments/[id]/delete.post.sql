-- param: id integer
-- require: claims.role = 'author' else /login

-- name: comment :one
delete from comment where id = :id returning id as comment_id;

-- redirect: /desk
