-- param: name text
-- hash: password_hash = :password

-- name: account :one
insert into account (name, password_hash) values (trim(:name), :password_hash) returning id, role;

-- claims: user = account.id, role = account.role
-- message: name unique = "Another account has this name."
-- message: name check = "A name has 1 to 80 characters."
-- invalid: /register
-- redirect: /account
