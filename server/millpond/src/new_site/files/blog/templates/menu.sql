-- The links of menu.html, by their number, and those of footer.html, which have none.
-- name: menu :many
select slug, title, menu from pages where draft is not true order by menu, title, slug;
