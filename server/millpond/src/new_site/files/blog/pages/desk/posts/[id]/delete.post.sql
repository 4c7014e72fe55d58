-- param: id integer
-- require: claims.role = 'author' else /login

-- name: post :one
delete from post where id = :id returning id as post_id;

-- redirect: /desk
