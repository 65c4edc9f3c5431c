"""A field of named spots."""

from gpututor.charts.scatter import Spot, spots
from tests.charts.test_curves import tables

FAR = [Spot(1, 1, "a", marked=True), Spot(10, 100, "b"), Spot(100, 10, "c", hollow=True)]


def texts(chart):
    """The names that are written, by the layer that writes them."""
    spec = chart.to_dict()
    found = {}
    for part in spec["layer"]:
        if part.get("name", "").startswith("ink"):
            data = spec["datasets"][part["data"]["name"]] if "name" in part["data"] else part["data"]["values"]
            found[part["name"]] = [line.split("\t")[2] for line in data.splitlines()[1:]]
    return found


def test_each_spot_is_drawn_with_its_name():
    lines = [line for table in tables(spots(FAR, x_title="hours", y_title="dollars")) for line in table]

    assert {"1\t1\ta", "10\t100\tb", "100\t10\tc"} <= set(lines)


def test_names_stand_to_the_right_and_at_the_right_edge_to_the_left():
    assert texts(spots(FAR, x_title="x", y_title="y")) == {"ink_right": ["a", "b"], "ink_left": ["c"]}


def test_a_name_beside_another_one_gives_way():
    near = [Spot(1, 1, "a", marked=True), Spot(1.01, 1.01, "b"), Spot(1.02, 1.02, "c"), Spot(1000, 1000, "far")]
    named = texts(spots(near, x_title="x", y_title="y"))

    assert named["ink_right"] == ["a"]
    assert named["ink_below"] == ["b"]
    assert named["ink_above"] == ["c"]


def test_what_has_no_place_on_an_axis_that_multiplies_is_left_out():
    chart = spots([*FAR, Spot(0, 5, "free")], x_title="x", y_title="y")

    assert "free" not in str(chart.to_dict())


def test_a_field_without_spots_is_still_a_chart():
    assert spots([], x_title="x", y_title="y").to_dict()["layer"]


def test_the_field_says_in_words_what_it_shows():
    assert spots(FAR, x_title="hours", y_title="dollars").to_dict()["description"] == "dollars against hours: a, b, c"
