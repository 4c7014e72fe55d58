-- param: name text
-- hash: password_hash = :password

-- name: account :one
insert into account (name, password_hash) values (trim(:name), :password_hash)
returning id, name as known_as, session_epoch;

-- claims: user = account.id, name = account.known_as, epoch = account.session_epoch
-- redirect: /account
