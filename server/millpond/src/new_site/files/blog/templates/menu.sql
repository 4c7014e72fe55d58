-- The links of menu.html, by their number, and those of footer.html, which have none.
-- name: menu :many
select slug, title, menu from pages order by menu, title, slug;
