-- POST /api/login with name and password: 200 and a token, or 422
-- param: name text

-- name: account :one?
select id, password_hash from account where name = trim(:name);

-- verify: account.password_hash = :password
-- claims: user = account.id
