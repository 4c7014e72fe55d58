-- require: claims.user else /login

-- name: account :one
select name, role from account where id = :claims.user;
