from __future__ import annotations

import pytest

from paydesk.web.sorting import sort_key


@pytest.mark.parametrize(
    ("language", "names"),
    [
        ("en", ["Afghanistan", "Åland Islands", "albania", "Zambia"]),
        ("de", ["Afghanistan", "Ägypten", "Albanien", "Österreich", "Oz"]),
        ("es", ["Nueva", "Ñame", "Omán"]),
        ("pl", ["Liban", "Luksemburg", "Łotwa", "Macedonia", "Serbia", "Świat", "Tunezja"]),
        ("tr", ["Cezayir", "Cibuti", "Çad", "Hırvatistan", "Hindistan", "Irak", "İran", "Slovakya", "Şili", "Tunus"]),
        ("vi", ["Ai Cập", "Áo", "Argentina", "Ấn Độ", "Ba Lan", "Dominica", "Đài Loan", "Đức", "Ecuador"]),
        ("ja", ["アイスランド", "ガイアナ", "カナダ", "ガボン", "韓国", "中国", "日本"]),
        ("zh", ["阿富汗", "澳大利亚", "德国", "法国", "美国", "日本", "中国"]),
        ("ar", ["ألبانيا", "إيران", "بلجيكا", "تونس", "مصر", "هولندا"]),
    ],
)
def test_names_stand_where_people_of_the_language_look_for_them(language: str, names: list[str]) -> None:
    assert sorted(names, key=lambda name: sort_key(name, language)) == names
