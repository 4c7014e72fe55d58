-- param: name text

-- Without such an account the answer is the same, after the same time.
-- name: account :one?
select id, name as known_as, session_epoch, password_hash from account where name = trim(:name);

-- verify: account.password_hash = :password else /login?failed=1
-- claims: user = account.id, name = account.known_as, epoch = account.session_epoch
-- redirect: :next else /account
