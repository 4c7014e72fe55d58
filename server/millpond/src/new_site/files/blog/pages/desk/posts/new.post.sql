-- param: title text
-- param: slug text
-- param: summary text = ''
-- param: body text
-- param: tag integer[]
-- param: public boolean = false
-- require: claims.role = 'author' else /login

-- name: author :one
select name as author from account where id = :claims.user;

-- name: post :one
insert into post (title, slug, summary, body, author, is_public)
values (trim(:title), trim(:slug), trim(:summary), :body, :author, :public) returning id as post_id;

-- name: tags :exec
insert into post_tag (post_id, tag_id) select :post_id, id from tag where id in (:tag);

-- Without a line `-- invalid:` a refusal is a page, pages/4xx.html: a long text would not fit into what leads back.
-- redirect: /desk
