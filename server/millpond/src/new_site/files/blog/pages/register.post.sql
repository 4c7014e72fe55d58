-- param: name text
-- hash: password_hash = :password

-- name: account :one
insert into account (name, password_hash) values (trim(:name), :password_hash) returning id, role;

-- claims: user = account.id, role = account.role
-- redirect: /account
