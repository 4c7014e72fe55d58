-- param: name text
-- require: claims.role = 'author' else /login

-- name: tag :exec
insert into tag (name) values (trim(:name)) on conflict do nothing;

-- redirect: /desk
