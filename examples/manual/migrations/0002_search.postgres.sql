-- The words of the documents, by passages: the lines from one heading to the next. The trigger keeps them as the table is.

-- `heading` counts the headings, and is 0 for the lines before the first one. What begins with # between ``` is none.
create table passages (
  folder text not null,
  slug text not null,
  heading bigint not null,
  title text,
  body text not null,
  words tsvector not null generated always as (
    setweight(to_tsvector('english', coalesce(title, '')), 'A') || to_tsvector('english', body)
  ) stored,
  primary key (folder, slug, heading)
);

create index passages_by_word on passages using gin (words);

create function split_document() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    delete from passages where folder = old.folder and slug = old.slug;
  end if;
  if tg_op <> 'DELETE' then
    insert into passages (folder, slug, heading, title, body)
    select new.folder, new.slug, heading, new.title, string_agg(text, E'\n' order by number)
    from (
      select number, text, count(*) filter (where not is_code and text ~ '^#+ ') over (order by number) as heading
      from (
        select number, text, count(*) filter (where ltrim(text) like '```%') over (order by number) % 2 = 1 as is_code
        from regexp_split_to_table(coalesce(new.body, ''), E'\n') with ordinality as line (text, number)
      ) as fenced
    ) as headed
    group by heading;
  end if;
  return null;
end $$;

create trigger split_document after insert or update or delete on docs
for each row execute function split_document();
