-- What `paydesk check` reads pingbacks' texts with: a text that is no JSON must be named, not end the check.
create function json_or_null(body text) returns jsonb language plpgsql immutable parallel safe as $$
begin
    return body::jsonb;
exception when others then
    return null;
end $$;
comment on function json_or_null is 'a text as JSON, null if it is none';
