-- param: name text

-- Without such an account the answer is the same, after the same time.
-- name: account :one?
select id, role, password_hash from account where name = trim(:name);

-- verify: account.password_hash = :password else /login?failed=true&next=:next
-- claims: user = account.id, role = account.role
-- redirect: :next else /account
