-- The words of the documents, by passages: the lines from one heading to the next. The triggers keep the index as the table is.

-- `heading` counts the headings, and is 0 for the lines before the first one. What begins with # between ``` is none.
create view passages as
with line as (
  select folder, slug, title, part.key as number, replace(part.value, char(1), '\') as text
  from docs, json_each('[' || replace(json_quote(replace(docs.body, '\', char(1))), '\n', '","') || ']') as part
), fenced as (
  select *, sum(ltrim(text) like '```%') over (partition by folder, slug order by number) % 2 as is_code from line
), headed as (
  select *, sum(not is_code and text like '#%' and ltrim(text, '#') like ' %') over (partition by folder, slug order by number) as heading
  from fenced
)
select folder, slug, heading, title, group_concat(text, char(10)) as body
from (select * from headed order by folder, slug, number)
group by folder, slug, heading;

create virtual table words using fts5 (
  folder unindexed, slug unindexed, heading unindexed, title, body, tokenize = 'unicode61 remove_diacritics 2'
);

insert into words (folder, slug, heading, title, body) select folder, slug, heading, title, body from passages;

create trigger words_insert after insert on docs begin
  insert into words (folder, slug, heading, title, body)
  select folder, slug, heading, title, body from passages where folder = new.folder and slug = new.slug;
end;

create trigger words_delete after delete on docs begin
  delete from words where folder = old.folder and slug = old.slug;
end;

create trigger words_update after update on docs begin
  delete from words where folder = old.folder and slug = old.slug;
  insert into words (folder, slug, heading, title, body)
  select folder, slug, heading, title, body from passages where folder = new.folder and slug = new.slug;
end;
