"""Small curves."""

from gpututor.charts import answer_picture, curve

POINTS = [(1.0, 0.9), (2.0, 0.4), (4.0, None)]


def tables(chart):
    """The lines of every table that a chart carries."""
    spec = chart.to_dict()
    whole = [part["data"] for part in [spec, *spec["layer"]] if "data" in part]
    texts = [spec["datasets"][data["name"]] if "name" in data else data["values"] for data in whole]
    return [text.splitlines() for text in texts]


def test_a_missing_value_is_left_out_and_not_zero():
    assert tables(curve({"busy": POINTS}, x_title="x")) == [["x\ty", "1\t0.9", "2\t0.4"]]


def test_shares_are_drawn_from_nothing_to_all():
    spec = curve({"busy": POINTS}, x_title="x").to_dict()

    assert spec["layer"][0]["encoding"]["y"]["scale"]["domain"] == [0, 1.0]


def test_an_answer_above_everything_can_be_seen_to_be_above():
    spec = answer_picture([(1.0, 7.0)], POINTS, x_title="x").to_dict()

    assert spec["layer"][0]["encoding"]["y"]["scale"]["domain"][1] > 1


def test_two_lines_carry_their_names():
    chart = curve({"eager": POINTS, "compiled": POINTS}, x_title="x")

    assert ["x\ty\tb", "2\t0.4\teager", "2\t0.4\tcompiled"] in tables(chart)


def test_small_charts_are_svg_so_that_the_page_can_theme_their_text():
    assert curve({"busy": POINTS}, x_title="x").to_dict()["usermeta"]["embedOptions"]["renderer"] == "svg"


def test_a_chart_says_in_words_what_it_shows():
    spec = curve({"busy": POINTS}, x_title="batch", here=(2, 0.4), here_text="40 %").to_dict()

    assert spec["description"] == "busy against batch; now 40 %"


def test_values_that_multiply_stand_between_powers_of_ten():
    spec = curve({"loop": [(1, 0.7), (3000, 357.0)]}, x_title="tensors", kind="number", log_y=True).to_dict()
    y = spec["layer"][0]["encoding"]["y"]

    assert y["scale"]["domain"] == [0.1, 1000.0]
    assert y["axis"]["values"] == [0.1, 1.0, 10.0, 100.0, 1000.0]


def test_ticks_of_a_level_axis_double_or_go_by_tens():
    bases = [
        curve({"busy": POINTS}, x_title="x", log_x=True, **asked).to_dict()["layer"][0]["encoding"]["x"]["scale"][
            "base"
        ]
        for asked in ({}, {"log_base": 10})
    ]

    assert bases == [2, 10]
