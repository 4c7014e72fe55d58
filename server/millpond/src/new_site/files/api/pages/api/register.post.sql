-- POST /api/register with name and password
-- param: name text
-- hash: password_hash = :password

-- name: account :one
insert into account (name, password_hash) values (trim(:name), :password_hash) returning id, name;

-- claims: user = account.id
-- created: /api/me
-- json: account
