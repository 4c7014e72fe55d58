-- param: name text
-- param: next text = ''

-- Without such an account the answer is the same, after the same time.
-- name: account :one?
select id, role, password_hash from account where name = trim(:name);

-- verify: account.password_hash = :password
-- claims: user = account.id, role = account.role
-- invalid: /login
-- redirect: :next else /account
